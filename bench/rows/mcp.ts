import { REJECTION } from '../lib/answers.js';
import { BenchError } from '../lib/bench-error.js';
import { compare, type Side } from '../lib/compare.js';
import { HttpClient } from '../lib/http-client.js';
import { column, ratioRow, type ResultRow } from '../lib/results.js';
import { USER } from '../lib/seed.js';
import { AnswerSide, type BenchContext, type Site, type Sites } from '../lib/site.js';
import { messagesText } from '../lib/sizes.js';

const PROTOCOL = '2025-11-25';
const ACCEPT = 'application/json, text/event-stream';
const TOOL = 'answer_question_kandev';

/** 5.4: an answer over MCP, in a session that was opened beforehand, against one over REST. */
export async function measureMcp(context: BenchContext, { small }: Sites): Promise<ResultRow[]> {
  context.say('rejection, MCP against REST');
  const { samples, warmUp } = context.sizes;
  const overRest = await AnswerSide.on(small, REJECTION, samples + warmUp);
  const overMcp = await mcpSide(small, samples + warmUp);
  const [a, b] = await compare(overMcp, overRest, { samples, warmUp, random: context.random });
  overRest.close();
  return [
    ratioRow(
      {
        row: 'mcp',
        database: context.engine,
        measure: `rejection over MCP against REST, ${messagesText(context.sizes.small)}`,
      },
      column(`MCP, tools/call ${TOOL}`, a),
      column('REST', b),
      2.5,
    ),
  ];
}

async function mcpSide(site: Site, count: number): Promise<Side> {
  const bundles = await site.stock.bundles(REJECTION.stock, count);
  const opening = new HttpClient(site.server.url, USER.token, { headers: { accept: ACCEPT } });
  const opened = await opening.send('POST', '/mcp', {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: 'bench', version: '0' } },
  });
  opening.close();
  const sessionId = opened.headers['mcp-session-id'];
  if (opened.status !== 200) throw new BenchError(`MCP initialize: ${opened.status} ${opened.text}`);
  const client = new HttpClient(site.server.url, USER.token, {
    headers: {
      accept: ACCEPT,
      'mcp-protocol-version': PROTOCOL,
      ...(typeof sessionId === 'string' ? { 'mcp-session-id': sessionId } : {}),
    },
  });
  return {
    sample: async (index) => {
      const pendingId = bundles[index]?.pendingId;
      const reply = await client.send('POST', '/mcp', {
        jsonrpc: '2.0',
        id: index + 1,
        method: 'tools/call',
        params: { name: TOOL, arguments: { pending_id: pendingId, ...(REJECTION.body as object) } },
      });
      assertClaimed(reply.status, reply.text, index + 1);
      return reply.milliseconds;
    },
  };
}

/** The reply stands in an event stream or is the body, as the server likes. */
function assertClaimed(status: number, text: string, id: number): void {
  const data = text.startsWith('{')
    ? text
    : text
        .split('\n')
        .findLast((line) => line.startsWith('data: {'))
        ?.slice(6);
  const message = status === 200 && data !== undefined ? JSON.parse(data) : undefined;
  const result = message?.id === id ? message.result?.structuredContent : undefined;
  if (result?.claimed !== true || result.delivered !== true || result.status !== REJECTION.status) {
    throw new BenchError(`MCP: ${status} ${text.slice(0, 500)}`);
  }
}
