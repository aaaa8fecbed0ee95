/** Something is wrong, not slow: the run ends with this one line and exit status 1. */
export class BenchError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'BenchError';
  }
}
