import type { NestExpressApplication } from '@nestjs/platform-express';
import { createApp, listen } from './app.setup.js';
import { databaseLabel } from './config/database-label.js';
import { loadEnv, readEnvironment } from './config/env.js';
import type { Env } from './config/env.js';
import { Log } from './observability/log.js';

/** Beyond the grace that requests under way have: for hooks that hang. */
const SHUTDOWN_SLACK_MS = 5_000;

const asked = signalled();
void run();

async function run(): Promise<void> {
  try {
    const env = loadEnv(readEnvironment());
    stopOnUnexpectedErrors(env);
    const app = await createApp(env);
    const url = await listen(app);
    process.stdout.write(
      `Clarion listens on ${url}, database ${databaseLabel(env.databaseUrl)}, authentication ${env.authMode}\n`,
    );
    await asked;
    await shutDown(app, env);
  } catch (error) {
    fail(error);
  }
}

/** From the first moment: a signal during the start ends it in order, once it is done. Later ones change nothing. */
function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve());
  });
}

async function shutDown(app: NestExpressApplication, env: Env): Promise<void> {
  setTimeout(
    () => fail(new Error('the shutdown did not end in time')),
    env.shutdownGraceMs + SHUTDOWN_SLACK_MS,
  ).unref();
  await app.close();
  process.exit(0);
}

/** A state nobody planned for is left at once; the rows alone are enough to recover from it. */
function stopOnUnexpectedErrors(env: Env): void {
  const log = new Log({ level: env.logLevel, format: env.logFormat });
  process.on('uncaughtException', (error) => {
    log.error('process.unexpected_error', { error });
    process.exit(1);
  });
}

/** One clear line, without the stack, whose messages may span lines. */
function fail(error: unknown): never {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`clarion: ${message.replace(/\s*\n\s*/g, ' ')}\n`);
  process.exit(1);
}
