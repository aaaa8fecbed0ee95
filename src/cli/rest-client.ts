import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { isStorableText } from '../common/text.js';
import { CommandFailedError, UsageError } from './cli-error.js';
import { terminalLine } from './terminal-text.js';

/** What the server allows an answer, and then some (5.2). */
const TIMEOUT_MS = 40_000;

/** Where the running server is, and who asks. */
export interface ServerAddress {
  readonly url: string;
  readonly token: string | undefined;
}

interface Request {
  readonly method: 'GET' | 'POST';
  /** Segments below `/api/v1`, not yet encoded. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

/** Speaks the REST interface of a running server; every failure is one sentence for the operator. */
export class RestClient {
  private readonly base: URL;

  constructor(private readonly address: ServerAddress) {
    this.base = serverUrl(address.url);
    // What cannot be a header would be quoted in an error of the platform's.
    if (!/^[\x21-\x7e]*$/.test(address.token ?? '')) throw new UsageError('CLARION_TOKEN is not a token');
  }

  /** The body of a successful reply, which must be what `schema` says. */
  async send<T extends TSchema>(request: Request, schema: T): Promise<Static<T>> {
    const response = await this.fetch(request);
    const body = await readJson(response);
    if (!response.ok) throw refusal(response.status, body);
    if (!Value.Check(schema, body)) {
      throw new CommandFailedError(`${this.base.href} sent a reply that is not Clarion's; nothing is known, try again`);
    }
    return body;
  }

  private async fetch(request: Request): Promise<Response> {
    const target = this.target(request);
    try {
      return await fetch(target, {
        method: request.method,
        headers: {
          accept: 'application/json',
          ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(this.address.token === undefined ? {} : { authorization: `Bearer ${this.address.token}` }),
        },
        ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    } catch (error) {
      throw new CommandFailedError(
        `no reply from ${this.base.href} (${reason(error)}); sending the same command again is safe`,
        { cause: error },
      );
    }
  }

  private target(request: Request): URL {
    const url = new URL(['api', 'v1', ...request.path.map(pathSegment)].join('/'), this.base);
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    return url;
  }
}

function serverUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable =
    (url?.protocol === 'http:' || url?.protocol === 'https:') &&
    [url.username, url.password, url.search, url.hash].every((part) => part === '');
  if (url === undefined || !isUsable) {
    throw new UsageError('--url (or CLARION_URL) must look like http://127.0.0.1:3000, without credentials or query');
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

/** A URL would swallow the segments `.` and `..`, however they are encoded. */
function pathSegment(text: string): string {
  if (/^\.{0,2}$/.test(text) || !isStorableText(text)) throw new UsageError(`"${text}" is not an id`);
  return encodeURIComponent(text);
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

function refusal(status: number, body: unknown): Error {
  const { error, code } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
  const sentence = typeof error === 'string' ? terminalLine(error) : `the server replied with status ${status}`;
  const line = typeof code === 'string' ? `${sentence} (${terminalLine(code)})` : sentence;
  if (code === 'validation_failed') return new UsageError(line);
  if (code === 'unauthorized') return new CommandFailedError(`${line}; set CLARION_TOKEN`);
  return new CommandFailedError(line);
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'TimeoutError') return `nothing within ${TIMEOUT_MS / 1000} s`;
  const { code, message } = (error.cause ?? {}) as { code?: string; message?: string };
  return terminalLine(code ?? message ?? error.message);
}
