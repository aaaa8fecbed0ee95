import { Type } from 'typebox';
import type { Contract, ProtocolError } from '../http/contract.js';

/** What a route of both surfaces says of itself, but for who may call it. */
type McpContract = Pick<Contract, 'tag' | 'body' | 'bodyExample' | 'holds' | 'success' | 'errors' | 'protocolErrors'>;

const EVENTS = 'text/event-stream';
const UNKNOWN_SESSION = { not_found: 'MCP session not found; initialize a new one' };
const STOPPING = { temporarily_unavailable: 'the service is shutting down' };

const JsonRpcError = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    error: Type.Object(
      { code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) },
      { additionalProperties: false },
    ),
    id: Type.Null(),
  },
  { additionalProperties: false, description: 'A JSON-RPC error that answers no request' },
);

const NOT_A_MESSAGE = protocolError(400, -32600, {
  description: 'what JSON-RPC or the protocol version refuses',
  message: 'the Mcp-Session-Id header is required; a session begins with initialize',
});
const NOT_ACCEPTED = protocolError(406, -32000, {
  description: 'Accept lacks a type that the reply may have',
  message: 'Not Acceptable: Client must accept text/event-stream',
});
const SECOND_STREAM = protocolError(409, -32000, {
  description: 'the MCP session has a stream already',
  message: 'Conflict: Only one SSE stream is allowed per session',
});

export const MCP_POST: McpContract = {
  tag: 'MCP',
  body: 'raw',
  bodyExample: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  success: [
    {
      status: 200,
      description: 'JSON-RPC messages as server-sent events, the last of them the reply',
      contentType: EVENTS,
      example: 'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
    },
    { status: 202, description: 'Taken: the body held notifications or replies only' },
  ],
  errors: {
    ...UNKNOWN_SESSION,
    ...STOPPING,
    too_many_requests: 'too many MCP sessions are open; end some, or try again later',
  },
  protocolErrors: [NOT_A_MESSAGE, NOT_ACCEPTED],
};

export const MCP_GET: McpContract = {
  tag: 'MCP',
  body: 'raw',
  holds: () => true,
  success: {
    status: 200,
    description: 'A stream that stays open for messages that are no reply',
    contentType: EVENTS,
    example: ': keepalive\n\n',
  },
  errors: { ...UNKNOWN_SESSION, ...STOPPING },
  protocolErrors: [NOT_A_MESSAGE, NOT_ACCEPTED, SECOND_STREAM],
};

export const MCP_DELETE: McpContract = {
  tag: 'MCP',
  body: 'raw',
  success: { status: 200, description: 'The MCP session has ended' },
  errors: UNKNOWN_SESSION,
  protocolErrors: [NOT_A_MESSAGE],
};

function protocolError(
  status: ProtocolError['status'],
  code: number,
  { description, message }: { readonly description: string; readonly message: string },
): ProtocolError {
  return { status, description, schema: JsonRpcError, example: { jsonrpc: '2.0', error: { code, message }, id: null } };
}
