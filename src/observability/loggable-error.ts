/** An error as it may be logged: never a bound parameter, a statement, or a value that a driver quotes. */
export interface LoggableError {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: LoggableError;
}

const MAX_CAUSES = 5;

export function loggableError(error: unknown, depth = 0): LoggableError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'a value that is no Error was thrown' };
  const code = (error as { code?: unknown }).code;
  const cause = depth < MAX_CAUSES && error.cause !== undefined ? loggableError(error.cause, depth + 1) : undefined;
  return {
    type: error.name,
    message: isFromDriver(error) ? withoutValues(error.message) : error.message,
    ...(typeof code === 'string' ? { code } : {}),
    // The first lines of a stack repeat the message.
    stack: (error.stack ?? '')
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .join('\n'),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** TypeORM's errors carry `query` and `parameters`, pg's `severity`, sqlite3's `errno` and a `SQLITE_` code. */
function isFromDriver(error: Error): boolean {
  return 'parameters' in error || 'query' in error || 'severity' in error || /SQLITE_/.test(error.message);
}

/** Drivers quote the offending value in their messages: `invalid input syntax for type json: "…"`. */
function withoutValues(message: string): string {
  return message.replace(/"[^"]*"?|'[^']*'?/g, '…');
}
