import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule } from '@nestjs/swagger';
import { AppModule } from './app.module.js';
import { StartupError } from './common/startup-error.js';
import { Env } from './config/env.js';
import { Readiness } from './health/readiness.js';
import { answerUnreadableRequests } from './http/client-error.js';
import { PresetExpressAdapter } from './http/express-adapter.js';
import { ContractedRoutes } from './http/contracted-routes.js';
import { deferContinue } from './http/expectations.js';
import { LimitMetrics } from './http/limit-metrics.js';
import { OpenReplies } from './http/open-replies.js';
import { openApiDocument } from './http/openapi/openapi-document.js';
import { RequestPipeline } from './http/pipeline/request-pipeline.js';
import { endSlowPeers } from './http/slow-peers.js';
import { Log } from './observability/log.js';
import { NestLog } from './observability/nest-log.js';

/** For Nest's factories, here and in tests. The pipeline parses bodies; main tells why a start failed. */
export function nestOptions(env: Env) {
  const log = new Log({ level: env.logLevel, format: env.logFormat });
  return { bodyParser: false, abortOnError: false, logger: new NestLog(log) } as const;
}

export async function createApp(env: Env): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.forRoot(env),
    new PresetExpressAdapter(),
    nestOptions(env),
  );
  return configureApp(app);
}

/** Everything about the HTTP server that is not in a module. Before `init`, so that the pipeline precedes the routes. */
export function configureApp(app: NestExpressApplication): NestExpressApplication {
  const env = app.get(Env);
  app.disable('x-powered-by').disable('etag').set('query parser', false).set('trust proxy', env.trustProxy);
  app.use(...app.get(RequestPipeline).middleware());
  if (env.openMetricsAndDocs) {
    const document = openApiDocument(app.get(ContractedRoutes).all());
    SwaggerModule.setup('docs', app, document, { raw: ['json'], jsonDocumentUrl: 'docs-json' });
  }
  const server: Server = app.getHttpServer();
  const replies = new OpenReplies(server);
  endSlowPeers(server, env, replies, app.get(LimitMetrics));
  answerUnreadableRequests(server, replies);
  deferContinue(server);
  return app;
}

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process does already',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'this user may not',
  ENOTFOUND: 'there is no such host',
};

/**
 * Recovers, then admits requests and listens. Resolves with the address, e.g. `http://127.0.0.1:3000`.
 * @throws StartupError
 */
export async function listen(app: NestExpressApplication): Promise<string> {
  const { host, port } = app.get(Env);
  await app.init();
  app.get(Readiness).admit();
  await app.listen(port, host).catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(
      `cannot listen on ${host} port ${port}: ${LISTEN_PROBLEMS[error.code ?? ''] ?? error.message}`,
    );
  });
  const address = app.getHttpServer().address() as AddressInfo;
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${name}:${address.port}`;
}
