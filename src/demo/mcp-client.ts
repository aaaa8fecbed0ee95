import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** The official MCP client, connected to one of the two surfaces. */
export class McpClient {
  private constructor(private readonly client: Client) {}

  static async connect(name: string, url: string, token: string | undefined): Promise<McpClient> {
    const client = new Client({ name, version: '1.0.0' });
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
    await client.connect(transport);
    return new McpClient(client);
  }

  async toolNames(): Promise<string[]> {
    return (await this.client.listTools()).tools.map((tool) => tool.name).sort();
  }

  /** @param progress the agent's way: hold the call open and report that it is alive */
  async call<T>(name: string, input: object, progress = false): Promise<T> {
    const result = await this.client.callTool(
      { name, arguments: { ...input } },
      undefined,
      progress ? { onprogress: () => undefined, resetTimeoutOnProgress: true, timeout: 60_000 } : { timeout: 30_000 },
    );
    if (result.isError === true) throw new Error(`${name} failed: ${JSON.stringify(result.content)}`);
    return result.structuredContent as T;
  }

  close(): Promise<void> {
    return this.client.close();
  }
}
