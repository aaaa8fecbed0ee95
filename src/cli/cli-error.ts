/** What was typed or configured cannot be used: one line on stderr, exit 2. */
export class UsageError extends Error {
  readonly exitCode = 2;
}

/** What was asked for is right but did not happen: one line on stderr, exit 1. */
export class CommandFailedError extends Error {
  readonly exitCode = 1;
}
