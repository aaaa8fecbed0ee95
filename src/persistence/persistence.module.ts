import { Inject, Module } from '@nestjs/common';
import type { DynamicModule, OnApplicationShutdown } from '@nestjs/common';
import { StartupError } from '../common/startup-error.js';
import { Env } from '../config/env.js';
import { DatabaseWaitMetrics } from './database-wait-metrics.js';
import { parseDatabaseUrl, type DatabaseUrl } from './database-url.js';
import { acquireInstanceLock } from './acquire-instance-lock.js';
import type { InstanceLock } from './instance-lock.js';
import { openDatabase, type Database } from './open-database.js';
import { Reader, UnitOfWork } from './unit-of-work.js';

export interface PersistenceOptions {
  /**
   * Called when another server took this one's database over. Default: one line on standard error, exit status 1;
   * going on could answer a question twice.
   */
  readonly onLockLost?: (error: StartupError) => void;
}

/** The database of this server: locked, open and migrated. Wrap {@link UnitOfWork} in tests, not this. */
export class ServerDatabase {
  private constructor(
    private readonly lock: InstanceLock,
    private readonly database: Database,
  ) {}

  /** @throws StartupError */
  static async open(
    env: Env,
    waits: DatabaseWaitMetrics,
    onLockLost: (error: StartupError) => void,
  ): Promise<ServerDatabase> {
    const url = databaseUrlOf(env);
    const lock = await acquireInstanceLock(url, onLockLost);
    try {
      const database = await openDatabase({
        url,
        poolSize: env.poolSize,
        boundMs: Math.max(env.preClaimBudgetMs, env.deliveryBudgetMs),
        waits,
      });
      return new ServerDatabase(lock, database);
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  get unitOfWork(): UnitOfWork {
    return this.database.unitOfWork;
  }

  get reader(): Reader {
    return this.database.reader;
  }

  async close(): Promise<void> {
    await this.database.close();
    await this.lock.release();
  }
}

/** {@link UnitOfWork} and {@link Reader} for everybody. Providers that need them are made when all is ready. */
@Module({})
export class PersistenceModule implements OnApplicationShutdown {
  constructor(@Inject(ServerDatabase) private readonly database: ServerDatabase) {}

  static forRoot(options: PersistenceOptions = {}): DynamicModule {
    const onLockLost = options.onLockLost ?? stopAtOnce;
    return {
      module: PersistenceModule,
      global: true,
      providers: [
        DatabaseWaitMetrics,
        {
          provide: ServerDatabase,
          inject: [Env, DatabaseWaitMetrics],
          useFactory: (env: Env, waits: DatabaseWaitMetrics) => ServerDatabase.open(env, waits, onLockLost),
        },
        { provide: UnitOfWork, inject: [ServerDatabase], useFactory: ({ unitOfWork }: ServerDatabase) => unitOfWork },
        { provide: Reader, inject: [ServerDatabase], useFactory: ({ reader }: ServerDatabase) => reader },
      ],
      exports: [UnitOfWork, Reader, ServerDatabase],
    };
  }

  /** Global modules are shut down after all others, so nothing is left that could still ask. */
  async onApplicationShutdown(): Promise<void> {
    await this.database.close();
  }
}

function databaseUrlOf(env: Env): DatabaseUrl {
  try {
    return parseDatabaseUrl(env.databaseUrl);
  } catch (error) {
    throw new StartupError(`DATABASE_URL ${(error as Error).message}`, { cause: error });
  }
}

function stopAtOnce(error: StartupError): void {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
