/** A REST client of the demo: one person, one token. */
export class Rest {
  constructor(
    private readonly url: string,
    private readonly token: string | undefined,
  ) {}

  async send(method: 'GET' | 'POST', path: string, body?: object): Promise<{ status: number; body: unknown }> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        ...(this.token !== undefined && { authorization: `Bearer ${this.token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as unknown) };
  }

  /** As {@link send}, for a step that must succeed. */
  async must<T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> {
    const reply = await this.send(method, path, body);
    if (reply.status >= 300) throw new Error(`${method} ${path} gave ${reply.status}: ${JSON.stringify(reply.body)}`);
    return reply.body as T;
  }
}
