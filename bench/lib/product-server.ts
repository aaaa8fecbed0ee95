import { ProbedProcess } from './probed-process.js';

export interface ProductOptions {
  /** Where it runs and logs. */
  readonly folder: string;
  readonly databaseUrl: string;
  /** Further environment variables, by their names. */
  readonly env?: Readonly<Record<string, string>>;
  /** For node, e.g. `--cpu-prof`. */
  readonly nodeArgs?: readonly string[];
}

/**
 * The product as it is shipped, from `dist/`, on a database that nobody else has open: authentication enforced, its log
 * at `info` in a file, no limits on how much one caller or address may ask or wait.
 */
export function startProduct(options: ProductOptions): Promise<ProbedProcess> {
  return ProbedProcess.start('dist/src/main.js', {
    folder: options.folder,
    ...(options.nodeArgs && { nodeArgs: options.nodeArgs }),
    env: {
      PORT: '0',
      AUTH_MODE: 'enforced',
      LOG_LEVEL: 'info',
      RATE_LIMIT_PER_MINUTE: '0',
      MAX_HELD_PER_CALLER: '0',
      MAX_HELD_PER_ADDRESS: '0',
      DATABASE_URL: options.databaseUrl,
      ...options.env,
    },
  });
}
