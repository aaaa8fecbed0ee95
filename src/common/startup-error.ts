/**
 * Why the process cannot start or go on, as one line for the operator. Never holds credentials; whoever runs the
 * process prints the message, without a stack, and exits with a status other than 0.
 */
export class StartupError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message.replace(/\s+/g, ' ').trim(), options);
    this.name = 'StartupError';
  }
}
