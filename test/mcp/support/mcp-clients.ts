import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** The SDK's own client on one of the surfaces. Closed by {@link closeClients}. */
const open: Client[] = [];

export async function connectMcp(url: string, path: string, token?: string): Promise<Client> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const client = new Client({ name: 'test', version: '0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(path, url), { requestInit: { headers } }));
  open.push(client);
  return client;
}

export async function closeClients(): Promise<void> {
  await Promise.all(open.splice(0).map((client) => client.close()));
}

export interface Outcome {
  readonly isError?: boolean;
  readonly text: string;
  readonly value: Record<string, unknown>;
}

/** Calls a tool and checks that the text says the same as the structured content. */
export async function callTool(
  client: Client,
  name: string,
  args: object = {},
  options: Parameters<Client['callTool']>[2] = {},
): Promise<Outcome> {
  const result = await client.callTool({ name, arguments: { ...args } }, undefined, options);
  const [content] = result.content as { type: string; text: string }[];
  const text = content?.text ?? '';
  const value = (result.structuredContent ?? {}) as Record<string, unknown>;
  if (result.isError === true) {
    if (result.structuredContent !== undefined) throw new Error('an error has no structured content');
    return { isError: true, text, value };
  }
  if (text !== JSON.stringify(value)) throw new Error('the text is not the structured content');
  return { text, value };
}
