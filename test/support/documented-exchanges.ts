import { expect } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { Request, RequestHandler, Response } from 'express';
import { ContractedRoutes } from '../../src/http/contracted-routes.js';
import { openApiDocument } from '../../src/http/openapi/openapi-document.js';
import { toolsOf } from '../../src/mcp/mcp-surfaces.js';
import type { ToolServices } from '../../src/mcp/mcp-surfaces.js';

interface DescribedResponse {
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, unknown>>;
}

interface Operation {
  readonly responses: Readonly<Record<string, DescribedResponse>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** A reply as the application wrote it. `isWhole`: it ended it, whether or not the client was still there. */
interface Exchange {
  readonly request: Request;
  readonly response: Response;
  readonly body: string;
  readonly isWhole: boolean;
}

/** Where the document itself is served; it does not describe that. */
const DOCS = /^\/docs(-json|\/.*)?$/;

/**
 * DOCS: holds every reply of an application against the OpenAPI document of the same application: the route and the
 * status are there, the headers that go with it are set, the body is of the type and shape described. Over MCP, what a
 * tool returns is of the shape that the tool declares.
 */
export class DocumentedExchanges {
  private readonly found = new Map<string, string>();

  /** Each once, with the first request and test that it was seen in. */
  get faults(): readonly string[] {
    return [...this.found.values()];
  }

  /** Before anything else of the application is used, so that no reply is missed. */
  watch(app: NestExpressApplication): void {
    let replies: DescribedReplies | undefined;
    app.use(recording((exchange) => this.check(exchange, () => (replies ??= describedReplies(app)))));
  }

  private check(exchange: Exchange, replies: () => DescribedReplies): void {
    const { request, response } = exchange;
    const fault = (what: string, route = request.originalUrl) => {
      const key = `${request.method} ${route} ${response.statusCode} ${what}`;
      if (this.found.has(key)) return;
      const seen = `${request.method} ${request.originalUrl.slice(0, 200)} → ${response.statusCode}`;
      this.found.set(key, `${seen}: ${what} (in "${expect.getState().currentTestName ?? ''}")`);
    };
    try {
      replies().check(exchange, fault);
    } catch (error) {
      fault(String(error));
    }
  }
}

function recording(done: (exchange: Exchange) => void): RequestHandler {
  return (request, response, next) => {
    const chunks: Buffer[] = [];
    let isDone = false;
    const finish = (isWhole: boolean) => {
      if (isDone || !response.headersSent) return;
      isDone = true;
      done({ request, response, body: Buffer.concat(chunks).toString('utf8'), isWhole });
    };
    const keep = (chunk: unknown) => {
      if (typeof chunk === 'string' || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk as string));
    };
    const write = response.write.bind(response) as (...args: unknown[]) => boolean;
    const end = response.end.bind(response) as (...args: unknown[]) => Response;
    response.write = (...args: unknown[]) => {
      keep(args[0]);
      return write(...args);
    };
    response.end = (...args: unknown[]) => {
      keep(args[0]);
      const ended = end(...args);
      finish(true);
      return ended;
    };
    response.once('close', () => finish(false));
    next();
  };
}

/** Compiled once for all applications of a test file, as they all have the same document. */
const compiled = new Map<string, DescribedReplies>();

function describedReplies(app: NestExpressApplication): DescribedReplies {
  const document = openApiDocument(app.get(ContractedRoutes).all());
  const text = JSON.stringify(document);
  const known = compiled.get(text) ?? new DescribedReplies(document as unknown as Document);
  compiled.set(text, known);
  return known;
}

type Fault = (what: string, route?: string) => void;

class DescribedReplies {
  private readonly ajv = new Ajv2020({ strict: false });
  private readonly templates: readonly { readonly path: string; readonly pattern: RegExp }[];
  private readonly tools = new Map(
    // Their schemas need no services.
    Object.values(toolsOf({} as ToolServices)).flatMap((tools) =>
      tools.map((tool) => [tool.name, tool.outputSchema] as const),
    ),
  );

  constructor(private readonly document: Document) {
    formats.default(this.ajv);
    this.ajv.addSchema(document, 'document');
    this.templates = Object.keys(document.paths)
      // What is spelt out goes before what any text fits, as in the router.
      .sort((a, b) => a.split('{').length - b.split('{').length)
      .map((path) => ({ path, pattern: patternOf(path) }));
  }

  check(exchange: Exchange, fault: Fault): void {
    const { request, response } = exchange;
    const url = new URL(request.originalUrl, 'http://localhost');
    const method = request.method === 'HEAD' ? 'get' : request.method.toLowerCase();
    const path = this.templates.find(({ pattern, path }) => pattern.test(url.pathname) && this.has(path, method))?.path;
    if (path === undefined) {
      if (response.statusCode >= 400) this.checkRefusal(exchange, fault);
      else if (!DOCS.test(url.pathname) && method !== 'options') fault('the document does not have this route');
      return;
    }
    const faultOfRoute = (what: string) => fault(what, path);
    const status = String(response.statusCode);
    const described = this.document.paths[path]?.[method]?.responses[status];
    if (described === undefined) return faultOfRoute('the document does not have this status');
    for (const header of Object.keys(described.headers ?? {})) {
      if (!response.hasHeader(header)) faultOfRoute(`the header ${header} is missing`);
    }
    this.checkBody(exchange, described, pointer('paths', path, method, 'responses', status), faultOfRoute);
  }

  private has(path: string, method: string): boolean {
    return this.document.paths[path]?.[method] !== undefined;
  }

  /** No route was reached: the pipeline's refusals, in the shape of every other error. */
  private checkRefusal({ request, response, body }: Exchange, fault: Fault): void {
    if (request.method === 'HEAD') return;
    if (mediaType(response) !== 'application/json') return fault(`an error of the type ${mediaType(response)}`);
    const { code } = JSON.parse(body) as { code?: unknown };
    this.checkJson(pointer('components', 'schemas', `error_${String(code)}`), body, fault);
  }

  private checkBody(exchange: Exchange, described: DescribedResponse, at: string, fault: Fault): void {
    const { request, response, body, isWhole } = exchange;
    if (described.content === undefined) {
      if (body !== '') fault('no body is described');
      return;
    }
    const type = mediaType(response);
    if (described.content[type] === undefined) return fault(`the type ${type} is not described`);
    if (request.method === 'HEAD') return;
    if (type === 'text/event-stream') return this.checkToolResults(request, body, fault);
    if (type === 'application/json' && isWhole) {
      this.checkJson(`${at}${pointer('content', type, 'schema')}`, body, fault);
    }
  }

  private checkJson(at: string, body: string, fault: Fault): void {
    const validate = this.ajv.getSchema(`document#${at}`);
    if (validate === undefined) return fault(`${decodeURIComponent(at)} is not in the document`);
    if (validate(JSON.parse(body)) !== true) fault(this.ajv.errorsText(validate.errors, { dataVar: 'body' }));
  }

  private checkToolResults(request: Request, body: string, fault: Fault): void {
    const requests = [request.body as JsonRpc | JsonRpc[] | undefined].flat();
    for (const [, data] of body.matchAll(/^data: (.+)\n\n/gm)) {
      const message = JSON.parse(data ?? '') as JsonRpc;
      const call = requests.find((sent) => sent?.method === 'tools/call' && sent.id === message.id);
      if (call?.params?.name === undefined || message.result === undefined || message.result.isError === true) continue;
      const schema = this.tools.get(call.params.name);
      if (schema === undefined) fault(`there is no tool ${call.params.name}`);
      else if (!this.ajv.validate(schema, message.result.structuredContent ?? null)) {
        fault(`${call.params.name}: ${this.ajv.errorsText(undefined, { dataVar: 'structuredContent' })}`);
      }
    }
  }
}

interface JsonRpc {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly name?: string };
  readonly result?: { readonly isError?: boolean; readonly structuredContent?: unknown };
}

/** The router takes any case and a slash at the end. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}/?$`, 'i');
}

function mediaType(response: Response): string {
  return (
    String(response.getHeader('Content-Type') ?? 'none')
      .split(';')[0]
      ?.trim() ?? ''
  );
}

/** A JSON pointer, as it stands in a URI. */
function pointer(...keys: readonly string[]): string {
  return keys.map((key) => `/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('');
}
