import { Body, Controller, Get, Global, HttpCode, Module, Param, Post, Query, Res } from '@nestjs/common';
import type { OnModuleInit, Type as Class } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import type { Response } from 'express';
import supertest from 'supertest';
import { Type } from 'typebox';
import { configureApp, listen, nestOptions } from '../../src/app.setup.js';
import { CallerGoneError } from '../../src/common/deadline.js';
import type { Deadline } from '../../src/common/deadline.js';
import {
  ConflictError,
  InternalError,
  NotFoundError,
  TemporarilyUnavailableError,
  UnauthorizedError,
} from '../../src/common/domain-error.js';
import { BooleanField, IntegerField, ListField, TextField } from '../../src/common/input/fields.js';
import { ConfigModule } from '../../src/config/config.module.js';
import { loadEnv } from '../../src/config/env.js';
import { HealthModule } from '../../src/health/health.module.js';
import { AccessPolicies } from '../../src/http/access-policies.js';
import { Contract } from '../../src/http/contract.js';
import { PresetExpressAdapter } from '../../src/http/express-adapter.js';
import { HttpModule } from '../../src/http/http.module.js';
import { CallerGoneParam, CallerParam, DeadlineParam } from '../../src/http/request-params.js';
import { Authenticator } from '../../src/identity/authenticator.js';
import { UNSCOPED } from '../../src/identity/caller.js';
import type { Caller } from '../../src/identity/caller.js';
import { Log } from '../../src/observability/log.js';
import { Metrics } from '../../src/observability/metrics.js';
import { ObservabilityModule } from '../../src/observability/observability.module.js';
import { Reader } from '../../src/persistence/unit-of-work.js';

class ItemInput {
  @TextField({ min: 1, max: 20 })
  name!: string;
}

class ProbeInput {
  @TextField({ optional: true, max: 2_000 })
  text?: string;

  @TextField({ optional: true })
  task_id?: string;

  @ListField(() => ItemInput, { max: 3, optional: true })
  items?: ItemInput[];
}

class ProbeQuery {
  @IntegerField({ optional: true, description: 'How many' })
  limit?: number;

  @TextField({ optional: true })
  cursor?: string;

  @BooleanField({ optional: true })
  all?: boolean;
}

const ECHO = Type.Object({}, { additionalProperties: true });

/** Something that has happened or not yet. */
class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}

/** Handlers that show what the pipeline and the guards let through. */
@Controller('api/v1/probe')
export class ProbeController implements OnModuleInit {
  calls = 0;
  readonly released = new Gate();
  readonly gone = new Gate();
  readonly held = new Gate();

  constructor(private readonly policies: AccessPolicies) {}

  onModuleInit(): void {
    this.policies.register('task', async (_caller, id) => {
      if (id !== 'mine') throw new NotFoundError('task not found');
    });
  }

  @Post('echo')
  @Contract({
    summary: 'Echo the body',
    tag: 'Probe',
    access: { kind: 'identified', agents: true },
    body: ProbeInput,
    success: { status: 200, description: 'The body', schema: ECHO, example: {} },
    errors: { conflict: 'the session is completed' },
  })
  echo(@Body() body: ProbeInput, @CallerParam() caller: Caller, @DeadlineParam() deadline: Deadline) {
    this.calls += 1;
    return { body, caller: caller.kind, left: deadline.remainingMs > 0, instance: body instanceof ProbeInput };
  }

  @Get('list')
  @Contract({
    summary: 'Echo the query',
    access: { kind: 'identified', agents: false },
    query: ProbeQuery,
    success: { status: 200, description: 'The query', schema: ECHO },
  })
  list(@Query() query: ProbeQuery) {
    return { query };
  }

  @Post('tasks/:id')
  @Contract({
    summary: 'One task',
    access: { kind: 'task', from: { param: 'id' }, agents: false },
    body: ProbeInput,
    success: [
      { status: 201, description: 'Made', schema: ECHO },
      { status: 200, description: 'There already', schema: ECHO },
    ],
  })
  task(@Param('id') id: string) {
    return { id };
  }

  @Post('by-body')
  @Contract({
    summary: 'A task named in the body',
    access: { kind: 'task', from: { body: 'task_id', optional: true }, agents: true },
    body: ProbeInput,
    success: { status: 200, description: 'Done', schema: ECHO },
  })
  byBody(@Body() body: ProbeInput) {
    return { body };
  }

  @Post('raw')
  @Contract({
    summary: 'Anything',
    access: { kind: 'identified', agents: true },
    body: 'raw',
    success: { status: 200, description: 'Anything', schema: ECHO },
  })
  raw(@Body() body: unknown) {
    return { body: body ?? 'none' };
  }

  @Post('fail/:how')
  @Contract({
    summary: 'Fail',
    access: { kind: 'identified', agents: true },
    success: { status: 204, description: '' },
  })
  fail(@Param('how') how: string): void {
    const failures: Record<string, () => Error> = {
      conflict: () => new ConflictError('the session is completed'),
      unavailable: () => new TemporarilyUnavailableError('try again'),
      internal: () => new InternalError('the answer could not be handed over', { retryable: false }),
      unknown: () =>
        Object.assign(new Error('near "SELEC": syntax error'), { query: 'SELEC secret', parameters: ['tea'] }),
      gone: () => new CallerGoneError(),
    };
    throw failures[how]?.() ?? new NotFoundError('no such failure');
  }

  @Get('hold')
  @Contract({
    summary: 'Hold',
    access: { kind: 'identified', agents: true },
    success: { status: 200, description: '' },
  })
  async hold(@CallerGoneParam() gone: AbortSignal) {
    gone.addEventListener('abort', () => this.gone.open());
    this.held.open();
    await this.released.opened;
    return { held: true };
  }

  @Get('half')
  @Contract({
    summary: 'Half',
    access: { kind: 'identified', agents: true },
    success: { status: 200, description: '' },
  })
  async half(@Res() response: Response): Promise<void> {
    await new Promise((resolve) => response.write('{"half":', resolve));
    throw new Error('broke in the middle');
  }
}

/** A handler that nobody has decided who may call. */
@Controller('api/v1/forgotten')
export class ForgottenController {
  @Get()
  @HttpCode(200)
  show() {
    return {};
  }
}

export interface ProbeApp {
  readonly app: NestExpressApplication;
  readonly url: string;
  readonly http: ReturnType<typeof supertest>;
  readonly probe: ProbeController;
  readonly logged: Record<string, unknown>[];
  /** What the next database ping does. */
  readonly database: { ping: () => Promise<void> };
  /** How many tokens have been looked up. */
  lookUps(): number;
  /** From now on the token is none. */
  revoke(token: string): void;
  /** What Prometheus would read. */
  metrics(): Promise<string>;
  close(): Promise<void>;
}

export interface ProbeOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly controllers?: Class[];
  /** Sees the application before anything is set up on it. */
  readonly watch?: (app: NestExpressApplication) => void;
}

/** The whole edge without the product: a fake authenticator and a database that only answers pings. */
export async function startProbeApp(options: ProbeOptions = {}): Promise<ProbeApp> {
  const env = loadEnv({ PORT: '0', LOG_LEVEL: 'silent', ...options.env });
  const database = { ping: async (): Promise<void> => undefined };
  const authenticator = new FakeAuthenticator(env.authMode);
  const logged: Record<string, unknown>[] = [];
  const write = (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>);

  @Global()
  @Module({
    providers: [
      { provide: Authenticator, useValue: authenticator },
      { provide: Reader, useValue: { ping: () => database.ping() } },
    ],
    exports: [Authenticator, Reader],
  })
  class FakesModule {}

  const module = await Test.createTestingModule({
    imports: [ConfigModule.forRoot(env), ObservabilityModule, HttpModule, HealthModule, FakesModule],
    controllers: [ProbeController, ...(options.controllers ?? [])],
  })
    .overrideProvider(Log)
    .useValue(new Log({ level: 'info', format: 'json', destination: { write } }))
    .compile();
  const bare = module.createNestApplication<NestExpressApplication>(new PresetExpressAdapter(), nestOptions(env));
  options.watch?.(bare);
  const app = configureApp(bare);
  const url = await listen(app);
  return {
    app,
    url,
    http: supertest(url),
    probe: app.get(ProbeController),
    logged,
    database,
    lookUps: () => authenticator.lookUps,
    revoke: (token) => authenticator.revoked.add(`Bearer ${token}`),
    metrics: () => app.get(Metrics).registry.metrics(),
    close: () => app.close(),
  };
}

const CALLERS: Readonly<Record<string, Caller>> = {
  'Bearer user': { kind: 'user', userId: 'u-1', userName: 'ada', tokenId: 't-1' },
  'Bearer user-second': { kind: 'user', userId: 'u-1', userName: 'ada', tokenId: 't-3' },
  'Bearer other': { kind: 'user', userId: 'u-2', userName: 'bob', tokenId: 't-2' },
  'Bearer agent': { kind: 'agent', sessionId: 's-1', tokenId: 'a-1' },
};

class FakeAuthenticator implements Pick<Authenticator, 'authenticate'> {
  lookUps = 0;
  readonly revoked = new Set<string>();

  constructor(private readonly mode: 'disabled' | 'enforced') {}

  async authenticate(header: string | undefined): Promise<Caller> {
    if (header === undefined && this.mode === 'disabled') return UNSCOPED;
    if (header !== undefined) this.lookUps += 1;
    const caller = CALLERS[header ?? ''];
    if (header === 'Bearer slow') throw new TemporarilyUnavailableError('the service is temporarily unavailable');
    if (caller === undefined || this.revoked.has(header ?? '')) {
      throw new UnauthorizedError('a valid access token is required');
    }
    return caller;
  }
}
