import type { LoggerService } from '@nestjs/common';
import type { Log } from './log.js';

/** Who speaks when a module, or listening, fails. */
const START_CONTEXTS = new Set(['ExceptionHandler', 'NestApplication']);

/**
 * Nest's own messages (routes mapped, modules started) as debug records; its warnings and errors as they are. A
 * failing start is told by main in one line, so what Nest says about it is for debugging only.
 */
export class NestLog implements LoggerService {
  constructor(private readonly target: Log) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.target.debug('nest.log', fields(message, rest));
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.target.debug('nest.log', fields(message, rest));
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.target.debug('nest.log', fields(message, rest));
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.target.warn('nest.warning', fields(message, rest));
  }

  error(message: unknown, ...rest: unknown[]): void {
    if (START_CONTEXTS.has(String(rest.at(-1)))) this.target.debug('nest.start_failed', fields(message, rest));
    else this.target.error('nest.error', fields(message, rest));
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.error(message, ...rest);
  }
}

/** Nest passes a message or an Error, then a stack perhaps, and last the context that speaks. */
function fields(message: unknown, rest: readonly unknown[]): Record<string, unknown> {
  const context = rest.at(-1);
  return {
    ...(message instanceof Error ? { error: message } : { message: String(message) }),
    ...(typeof context === 'string' ? { context } : {}),
  };
}
