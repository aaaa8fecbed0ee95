import { afterAll, expect } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import type { TestingModuleBuilder } from '@nestjs/testing';
import supertest from 'supertest';
import { AppModule } from '../../src/app.module.js';
import { configureApp, listen, nestOptions } from '../../src/app.setup.js';
import { Deadline } from '../../src/common/deadline.js';
import { loadEnv } from '../../src/config/env.js';
import { PresetExpressAdapter } from '../../src/http/express-adapter.js';
import { Accounts } from '../../src/identity/accounts.js';
import { Log } from '../../src/observability/log.js';
import { ServerDatabase } from '../../src/persistence/persistence.module.js';
import { Reader, UnitOfWork } from '../../src/persistence/unit-of-work.js';
import { watchClaims } from './claim-watch.js';
import { DocumentedExchanges } from './documented-exchanges.js';
import type { StatementRecorder } from './statement-recorder.js';

export interface StartAppOptions {
  /** Default `disabled`. */
  readonly authMode?: 'disabled' | 'enforced';
  /** Further environment variables, by their names. */
  readonly env?: NodeJS.ProcessEnv;
  /** Put around the unit of work, e.g. to hold one transaction open at a named step. */
  readonly wrap?: (unitOfWork: UnitOfWork) => UnitOfWork;
  /** Put around the reader, e.g. to make some reads fail. */
  readonly wrapReader?: (reader: Reader) => Reader;
  readonly recorder?: StatementRecorder;
  /** Replaces providers: `(builder) => builder.overrideProvider(Clock).useValue(clock)`. */
  readonly overrides?: (builder: TestingModuleBuilder) => TestingModuleBuilder;
}

/** The whole product, listening on a random loopback port, on a database of the test's own. */
export interface RunningApp {
  readonly app: NestExpressApplication;
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly http: ReturnType<typeof supertest>;
  /** Every record that the product logged, at debug level and above. */
  readonly logged: readonly Record<string, unknown>[];
  /** A new user and a token of theirs, made as the CLI makes them. */
  createUser(name?: string): Promise<{ id: string; name: string; token: string }>;
  /** A further token of the user's. */
  createToken(userName: string): Promise<string>;
  close(): Promise<void>;
}

const exchanges = new DocumentedExchanges();

// At the end of every file that uses this module, and not in a test: one may end before its last reply is written.
afterAll(() => expect(exchanges.faults).toEqual([]));

export async function startApp(database: { readonly url: string }, options: StartAppOptions = {}): Promise<RunningApp> {
  const env = loadEnv({
    PORT: '0',
    LOG_LEVEL: 'silent',
    RATE_LIMIT_PER_MINUTE: '0',
    DATABASE_URL: database.url,
    AUTH_MODE: options.authMode ?? 'disabled',
    ...options.env,
  });
  const logged: Record<string, unknown>[] = [];
  const write = (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>);
  const builder = Test.createTestingModule({ imports: [AppModule.forRoot(env)] })
    .overrideProvider(Log)
    .useValue(new Log({ level: 'debug', format: 'json', destination: { write } }))
    .overrideProvider(UnitOfWork)
    .useFactory({
      inject: [ServerDatabase],
      factory: ({ unitOfWork }: ServerDatabase) => {
        const wrapped = (options.wrap ?? ((same) => same))(watchClaims(unitOfWork));
        return options.recorder?.unitOfWork(wrapped) ?? wrapped;
      },
    })
    .overrideProvider(Reader)
    .useFactory({
      inject: [ServerDatabase],
      factory: ({ reader }: ServerDatabase) => {
        const wrapped = (options.wrapReader ?? ((same) => same))(reader);
        return options.recorder?.reader(wrapped) ?? wrapped;
      },
    });
  const module = await (options.overrides ?? ((same) => same))(builder).compile();
  const bare = module.createNestApplication<NestExpressApplication>(new PresetExpressAdapter(), nestOptions(env));
  exchanges.watch(bare);
  const app = configureApp(bare);
  let url: string;
  try {
    url = await listen(app);
  } catch (error) {
    await app.close();
    throw error;
  }
  let closing: Promise<void> | undefined;
  return {
    app,
    url,
    http: supertest(url),
    logged,
    createUser: (name = `user-${randomUUID()}`) => createUser(app.get(Accounts), name),
    createToken: (userName) => createToken(app.get(Accounts), userName),
    close: () => (closing ??= app.close()),
  };
}

async function createUser(accounts: Accounts, name: string) {
  const { id } = await accounts.createUser(name, Deadline.after(10_000));
  return { id, name, token: await createToken(accounts, name) };
}

async function createToken(accounts: Accounts, userName: string): Promise<string> {
  return (await accounts.createToken({ userName, name: '', lifetimeMs: null }, Deadline.after(10_000))).token;
}
