import type { Tool, ToolCall } from '../../../src/mcp/tools/tool.js';

/** The arguments of a call. */
export type Members = Record<string, unknown>;

/** A tool with nothing behind it but the handler. */
export function fakeTool(
  name: string,
  handler: (input: Members, call: ToolCall) => Promise<object> | object,
  surface: Tool['surface'] = 'external',
): Tool {
  return {
    name,
    title: name,
    description: name,
    surface,
    inputSchema: { type: 'object', properties: {}, required: [], additionalProperties: false },
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    handler: async (input, call) => handler(input as Members, call),
  };
}

/** Calls that wait until the test lets them go on. */
export class Gate {
  private readonly arrivals: {
    readonly input: Members;
    readonly call: ToolCall;
    readonly open: (value: object) => void;
  }[] = [];
  private readonly watchers: (() => void)[] = [];

  readonly handler = (input: Members, call: ToolCall): Promise<object> =>
    new Promise((open, reject) => {
      call.signal.addEventListener('abort', () => reject(call.signal.reason as Error));
      this.arrivals.push({ input, call, open });
      for (const watcher of this.watchers.splice(0)) watcher();
    });

  /** The nth call, once it has come. */
  async arrival(n: number): Promise<{ input: Members; call: ToolCall; open: (value: object) => void }> {
    for (;;) {
      const found = this.arrivals[n];
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.watchers.push(resolve));
    }
  }
}
