import type { Env } from '../config/env.js';
import type { ServerAddress } from './rest-client.js';

/** What commands know of the world around them. Settings are read when a command needs them: `--help` needs none. */
export interface CliContext {
  /** @throws ConfigError */
  readonly env: () => Env;
  /** @throws ConfigError */
  readonly server: () => ServerAddress;
  /** One line, or several, on standard output. */
  readonly print: (text: string) => void;
}
