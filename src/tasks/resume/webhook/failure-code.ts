/** Why a call failed, for a log: a code of ours or of the system. Messages are left out, they quote names and URLs. */
export function failureCode(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^\w{1,64}$/.test(code) ? code : 'error';
}

export class CallFailure extends Error {
  constructor(
    readonly code:
      | 'aborted'
      | 'timeout'
      | 'url_refused'
      | 'address_refused'
      | 'no_address'
      | 'connect_timeout'
      | 'closed'
      | 'secret_unusable',
  ) {
    super(code);
    this.name = 'CallFailure';
  }
}
