import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { getObjectShape, safeParse } from '@modelcontextprotocol/sdk/server/zod-compat.js';
import type { AnyObjectSchema, SchemaOutput } from '@modelcontextprotocol/sdk/server/zod-compat.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  RequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type {
  CallToolRequest,
  CallToolResult,
  Notification,
  Request,
  RequestId,
  Result,
  ServerNotification,
  ServerRequest,
  ServerResult,
  Tool as ListedTool,
} from '@modelcontextprotocol/sdk/types.js';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import type { ProgressReporter } from '../call-hold.js';
import type { Tool } from '../tools/tool.js';

/** What the SDK's server of one MCP session hands on. */
export interface ToolServerHost {
  /** Never throws: a refusal is a result. */
  call(tool: Tool, id: RequestId, progress: ProgressReporter | undefined): Promise<CallToolResult>;
  cancel(id: RequestId): void;
}

export interface ToolServerIdentity {
  readonly name: string;
  readonly title: string;
  readonly version: string;
  /** Tells a model what the tools are for, before it has seen any. */
  readonly instructions: string;
}

/** Every server makes its own by default, at some 100 KiB apiece, for a check that none of ours runs. */
const sharedValidator = new AjvJsonSchemaValidator();

/**
 * Looser than the SDK's own schema of a call, which the SDK's server checks once more: only what fails there is told as
 * invalid parameters rather than as a fault of ours.
 */
const AnyToolCall = RequestSchema.extend({ method: CallToolRequestSchema.shape.method });

/**
 * Tells a request of a known method that does not fit its schema as invalid parameters, which it is: the SDK's own server
 * takes it for an internal error, with its parser's findings as the text.
 */
class StrictServer extends Server {
  override setRequestHandler<T extends AnyObjectSchema>(
    schema: T,
    handler: (
      request: SchemaOutput<T>,
      extra: RequestHandlerExtra<ServerRequest | Request, ServerNotification | Notification>,
    ) => ServerResult | Result | Promise<ServerResult | Result>,
  ): void {
    const method = getObjectShape(schema)?.method as typeof RequestSchema.shape.method;
    const anyRequest = RequestSchema.extend({ method });
    super.setRequestHandler(anyRequest, (request, extra) => {
      const parsed = safeParse(schema, request);
      if (parsed.success) return handler(parsed.data, extra);
      throw new McpError(ErrorCode.InvalidParams, `the parameters do not fit ${request.method}`);
    });
  }
}

/** A fresh SDK server for one MCP session. One shared by several would send answers to the wrong client. */
export function makeToolServer(identity: ToolServerIdentity, tools: readonly Tool[], host: ToolServerHost): Server {
  const { instructions, ...info } = identity;
  const server = new StrictServer(info, {
    capabilities: { tools: {} },
    instructions,
    jsonSchemaValidator: sharedValidator,
  });
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const listed = tools.map(asListed);

  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: listed }));

  server.setRequestHandler(AnyToolCall, (request, extra) => {
    const { name, _meta } = request.params as CallToolRequest['params'];
    const tool = byName.get(name);
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `unknown tool ${shown(name)}`);
    const progressToken = _meta?.progressToken;
    const progress: ProgressReporter | undefined =
      progressToken === undefined
        ? undefined
        : (value, message) => {
            // Fails only when the connection has gone, which the call learns by itself.
            extra
              .sendNotification({
                method: 'notifications/progress',
                params: { progressToken, progress: value, message },
              })
              .catch(() => undefined);
          };
    return host.call(tool, extra.requestId, progress);
  });

  // In place of the SDK's own handler, which overlooks a request with the id 0.
  server.setNotificationHandler(CancelledNotificationSchema, ({ params }) => {
    if (params.requestId !== undefined) host.cancel(params.requestId);
  });

  return server;
}

function asListed(tool: Tool): ListedTool {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  return {
    name,
    title,
    description,
    inputSchema: inputSchema as unknown as ListedTool['inputSchema'],
    outputSchema: outputSchema,
    annotations: { title, ...annotations },
  };
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 64));
}
