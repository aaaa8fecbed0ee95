import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { PublishedTool } from './mcp-cases.js';
import type { OpenApi } from './rest-cases.js';
import type { FuzzWorld, SentCase } from './world.js';
import type { WireReply } from './wire.js';

/** What one case came to. */
export interface Verdict {
  /** As the table counts it: the status, of a tool call also the code of its refusal. */
  readonly outcome: string;
  /** Its handler had the input and dealt with it: it succeeded, or the state of things forbade it. */
  readonly isPastValidation: boolean;
  /** What is wrong with the reply. */
  readonly fault?: string;
}

type Heard = Extract<WireReply, { readonly kind: 'reply' }>;

interface JsonRpc {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly method?: unknown;
  readonly result?: {
    readonly isError?: boolean;
    readonly structuredContent?: unknown;
    readonly content?: { readonly text?: unknown }[];
  };
  readonly error?: { readonly code?: unknown; readonly message?: unknown };
}

export const HUNG = 'no reply within the deadline';

/** A wait that nobody ended is no error of the server's. */
const WAITED = 504;
/** What a handler says of the state of things, once it has accepted the input. */
const STATE_CODES = new Set(['not_active', 'conflict', 'wait_timeout']);
const OUR_FAULT_CODES = new Set(['internal', 'temporarily_unavailable', 'too_many_requests']);
const RPC_INTERNAL = -32603;

/**
 * The one internal error that is promised: another case opened a newer turn between a claim and its hand-over. The answer is
 * recorded, and whoever gave it is told so.
 */
const OVERTAKEN = /the answer is recorded but its session has moved on/;

/** @param text a reply, or a line of the log */
export function tellsOfOvertaking(text: string): boolean {
  return OVERTAKEN.test(text);
}

/** Of a program's inside: stacks, SQL, drivers, files. */
const INSIDE =
  /\bat \S+ \(|\bat (file|node):|node_modules|\.[jt]s:\d+|\bSELECT\b.*\bFROM\b|\bINSERT INTO\b|\bUPDATE \w+ SET\b|SQLITE_|QueryFailed|task_session_|\bpg_|ECONN|(Type|Range|Reference|Syntax)Error|Cannot read prop|is not a function|is not iterable|\[object /;
const TOKEN = /cl[ua]_[A-Za-z0-9_-]{43}|whsec_[A-Za-z0-9+/]{32,}/;
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Where a secret is shown, once. */
const SHOWS_SECRETS = /\/(sessions|agent-token)\/?$|\/task-sessions\/[^/]+\/?$/i;

/** Holds every reply against what the product publishes of itself, and against what nobody may be told. */
export class ReplyChecks {
  private readonly ajv = new Ajv2020({ strict: false });
  private readonly templates: readonly { readonly path: string; readonly pattern: RegExp }[];
  private readonly tools: ReadonlyMap<string, PublishedTool>;
  private readonly codes: ReadonlySet<string>;

  constructor(
    private readonly document: OpenApi & { readonly components: { readonly schemas: object } },
    tools: readonly PublishedTool[],
    private readonly world: FuzzWorld,
  ) {
    formats.default(this.ajv);
    this.ajv.addSchema(document, 'document');
    for (const tool of tools) this.ajv.addSchema(tool.outputSchema, `tool:${tool.name}`);
    this.tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.codes = new Set(Object.keys(document.components.schemas).map((name) => name.replace(/^error_/, '')));
    this.templates = Object.keys(document.paths)
      // What is spelt out goes before what any text fits, as in the router.
      .sort((a, b) => a.split('{').length - b.split('{').length)
      .map((path) => ({ path, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}/?$`, 'i') }));
  }

  /** @param tool that the case calls, if it is about one */
  judge(sent: SentCase, reply: WireReply, tool?: string): Verdict {
    switch (reply.kind) {
      case 'left':
        return { outcome: 'left', isPastValidation: false };
      case 'hung':
        return { outcome: 'hung', isPastValidation: false, fault: HUNG };
      case 'dropped':
        return {
          outcome: 'dropped',
          isPastValidation: false,
          fault: `the connection ended without a reply: ${reply.why}`,
        };
      case 'reply':
        return this.judgeReply(sent, reply, tool);
    }
  }

  private judgeReply(sent: SentCase, reply: Heard, tool: string | undefined): Verdict {
    const { status } = reply;
    const text = reply.body.toString('utf8');
    const called = tool === undefined || status !== 200 ? undefined : this.toolResult(text, sent, tool);
    const fault =
      statusFault(status, text) ?? this.leak(sent, reply, text) ?? this.shapeFault(sent, reply, text) ?? called?.fault;
    return {
      outcome: called?.outcome ?? String(status),
      isPastValidation: called?.isPastValidation ?? (status < 300 || status === 409 || status === WAITED),
      ...(fault !== undefined && { fault }),
    };
  }

  /** Foreign texts and ids, secrets, and the inside of the program. */
  private leak({ request, caller }: SentCase, reply: Heard, text: string): string | undefined {
    const told = `${JSON.stringify(reply.headers)}\n${text}`;
    if (this.world.canariesFor(caller).some((canary) => told.includes(canary))) return "it holds another user's text";
    const sent = `${request.path}\n${request.body?.toString('utf8') ?? ''}\n${JSON.stringify(request.headers)}`;
    for (const [id] of told.matchAll(ID)) {
      if (this.world.isHidden(id, caller) && !sent.includes(id)) return 'it holds the id of something hidden';
    }
    if (TOKEN.test(told) && !SHOWS_SECRETS.test(request.path.split(/[?#]/)[0] ?? '')) return 'it holds a secret';
    if (reply.status >= 400 && INSIDE.test(text)) return 'an error shows the inside of the program';
    return undefined;
  }

  private shapeFault({ request }: SentCase, reply: Heard, text: string): string | undefined {
    // Nothing but a head.
    if (request.method === 'HEAD' || request.method === 'OPTIONS') return undefined;
    const pathname = request.path.split(/[?#]/)[0] ?? '';
    const method = request.method.toLowerCase();
    const found = this.templates.find(
      ({ path, pattern }) => pattern.test(pathname) && this.document.paths[path]?.[method] !== undefined,
    );
    const described = found && this.document.paths[found.path]?.[method]?.responses[String(reply.status)];
    const type = String(reply.headers['content-type'] ?? 'none').split(';')[0] ?? '';
    // Before the route, or for none: any refusal that the document has.
    if (found === undefined || (described === undefined && reply.status !== 404)) {
      if (found !== undefined) return `the document has no ${reply.status} of this route`;
      return reply.status < 400 ? 'the document has no such route' : this.errorFault(type, text);
    }
    // An id with a slash or a fragment in it makes another route of it, which nobody has.
    if (described === undefined) return this.errorFault(type, text);
    for (const header of Object.keys(described.headers ?? {})) {
      if (reply.headers[header.toLowerCase()] === undefined) return `the header ${header} is missing`;
    }
    if (described.content === undefined) return text === '' ? undefined : 'a body where none is described';
    if (described.content[type] === undefined) return `the type ${type} is not described`;
    if (type !== 'application/json') return type === 'text/event-stream' ? streamFault(text) : undefined;
    return this.jsonFault(
      pointer('paths', found.path, method, 'responses', String(reply.status), 'content', type, 'schema'),
      text,
    );
  }

  private errorFault(type: string, text: string): string | undefined {
    if (type !== 'application/json') return `an error of the type ${type}`;
    const { code } = (parse(text) ?? {}) as { readonly code?: unknown };
    if (!this.codes.has(String(code))) return `an error with the unknown code ${String(code)}`;
    return this.jsonFault(pointer('components', 'schemas', `error_${String(code)}`), text);
  }

  private jsonFault(at: string, text: string): string | undefined {
    const body = parse(text);
    if (body === undefined) return 'the body is not JSON';
    const validate = this.ajv.getSchema(`document#${at}`);
    if (validate === undefined) return `${decodeURIComponent(at)} is not in the document`;
    return validate(body) === true ? undefined : this.ajv.errorsText(validate.errors, { dataVar: 'body' });
  }

  /** Of the one call in the request. */
  private toolResult(text: string, { rpcId }: SentCase, name: string): Verdict {
    const reply = messagesIn(text).find((message) => message.id === rpcId && message.method === undefined);
    const outcome = (what: string, fault?: string): Verdict => ({
      outcome: `200 ${what}`,
      isPastValidation: STATE_CODES.has(what) || what === 'result',
      ...(fault !== undefined && { fault }),
    });
    if (reply?.error !== undefined) return outcome('protocol error');
    // A misspelt id may still be JSON-RPC.
    if (reply?.result === undefined) return outcome('no result');
    const { isError, structuredContent, content } = reply.result;
    const said = content?.[0]?.text;
    if (typeof said !== 'string' || content?.length !== 1) return outcome('odd result', 'not one text');
    if (isError !== true) {
      const validate = this.ajv.getSchema(`tool:${this.tools.get(name)?.name}`);
      if (validate?.(structuredContent) !== true) {
        return outcome('odd result', this.ajv.errorsText(validate?.errors, { dataVar: 'structuredContent' }));
      }
      return outcome(
        'result',
        said === JSON.stringify(structuredContent) ? undefined : 'the text is not the structured content',
      );
    }
    const code = /^([a-z_]+): \S/.exec(said)?.[1] ?? 'none';
    if (structuredContent !== undefined) return outcome(code, 'an error with structured content');
    if (!this.codes.has(code)) return outcome(code, `an error that does not begin with a code: ${said.slice(0, 100)}`);
    if (tellsOfOvertaking(said)) return outcome('overtaken', /retryable: false/.test(said) ? undefined : 'retryable');
    if (OUR_FAULT_CODES.has(code)) return outcome(code, `a tool failed with ${code}`);
    return outcome(code, INSIDE.test(said) ? 'an error shows the inside of the program' : undefined);
  }
}

function statusFault(status: number, text: string): string | undefined {
  if (status === 500 && tellsOfOvertaking(text) && text.includes('"retryable":false')) return undefined;
  if (status >= 500 && status !== WAITED) return `status ${status}`;
  if (status === 429) return 'status 429, and no limit is set';
  return text.includes(`"code":${RPC_INTERNAL}`) ? `JSON-RPC error ${RPC_INTERNAL}` : undefined;
}

/** Events, comments and fields, one a line; what holds JSON-RPC holds nothing else. */
function streamFault(text: string): string | undefined {
  // The last block may not be whole where we closed the stream.
  for (const line of text.slice(0, text.lastIndexOf('\n\n') + 1).split('\n')) {
    if (!/^($|:|data: |event: |id: ?|retry: )/.test(line))
      return `not a line of an event stream: ${line.slice(0, 100)}`;
  }
  for (const message of messagesIn(text)) {
    if (message.jsonrpc === undefined) continue;
    const isReply = message.id !== undefined && (message.result !== undefined) !== (message.error !== undefined);
    if (message.jsonrpc !== '2.0' || !(isReply || typeof message.method === 'string')) return 'not JSON-RPC';
    const { error } = message;
    if (error !== undefined && (typeof error.message !== 'string' || !Number.isInteger(error.code)))
      return 'not a JSON-RPC error';
    if (error !== undefined && INSIDE.test(String(error.message)))
      return 'a JSON-RPC error shows the inside of the program';
  }
  return undefined;
}

function messagesIn(stream: string): JsonRpc[] {
  return [...stream.matchAll(/^data: (\{[^\n]*)$/gm)].map(([, data]) => (parse(data ?? '') ?? {}) as JsonRpc);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** A JSON pointer, as it stands in a URI. */
function pointer(...keys: readonly string[]): string {
  return keys.map((key) => `/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('');
}
