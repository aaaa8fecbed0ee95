import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import { loggableError } from './loggable-error.js';
import { prettyDestination } from './pretty-destination.js';
import { currentRequestId } from './request-context.js';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** Ids, counts, codes, durations. Never a token, a secret, or the text of a question or an answer. */
export type LogFields = Readonly<Record<string, unknown>> & { readonly error?: unknown };

/** A second line of defence: fields that should not have been given in the first place. */
const SECRET_FIELDS = ['token', 'agent_token', 'secret', 'password', 'authorization', 'token_hash'];

/**
 * Structured records: an event name (`bundle.claimed`) and fields in snake case; the request's id is added.
 * info: a durable move. warn: something we recovered from. error: somebody must look.
 */
export class Log {
  private readonly logger: Logger;

  constructor(options: { level: LogLevel; format: 'json' | 'pretty'; destination?: DestinationStream }) {
    // stdout belongs to the one line that says where the server listens. Synchronous, so that a crash loses nothing.
    const stderr = options.destination ?? pino.destination({ fd: 2, sync: true });
    this.logger = pino(
      {
        level: options.level,
        base: null,
        messageKey: 'event',
        timestamp: () => `,"time":"${new Date().toISOString()}"`,
        formatters: { level: (label) => ({ level: label }) },
        redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: '[redacted]' },
        serializers: { error: (error) => loggableError(error) },
        mixin: () => {
          const requestId = currentRequestId();
          return requestId === undefined ? {} : { request_id: requestId };
        },
      },
      options.format === 'pretty' ? prettyDestination(stderr) : stderr,
    );
  }

  debug(event: string, fields: LogFields = {}): void {
    this.logger.debug(fields, event);
  }

  info(event: string, fields: LogFields = {}): void {
    this.logger.info(fields, event);
  }

  warn(event: string, fields: LogFields = {}): void {
    this.logger.warn(fields, event);
  }

  error(event: string, fields: LogFields = {}): void {
    this.logger.error(fields, event);
  }

  /** Whether debug records are written: for callers whose fields are costly. */
  get debugs(): boolean {
    return this.logger.isLevelEnabled('debug');
  }
}
