import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { toolsOf } from '../../src/mcp/mcp-surfaces.js';
import type { ToolServices } from '../../src/mcp/mcp-surfaces.js';
import { startEndpoint } from './support/endpoint-server.js';
import type { EndpointServer } from './support/endpoint-server.js';

// Listing tools calls nothing.
const tools = toolsOf({} as ToolServices);
const all = [...tools.external, ...tools.session];

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

let server: EndpointServer;
beforeAll(async () => {
  server = await startEndpoint(all);
});
afterAll(() => server.close());

async function listed(path: string) {
  const client = await server.connect(path);
  return (await client.listTools()).tools;
}

describe('MCP-SURFACES: the tools of the external surface', () => {
  it('are these five, with these annotations', async () => {
    expect((await listed('/mcp')).map(({ name, annotations }) => [name, annotations])).toEqual([
      ['list_pending_questions_kandev', { title: 'List pending questions', ...READS }],
      [
        'answer_question_kandev',
        {
          title: 'Answer or decline a pending question',
          readOnlyHint: false,
          destructiveHint: false,
          idempotentHint: true,
          openWorldHint: false,
        },
      ],
      ['list_tasks_kandev', { title: 'List tasks', ...READS }],
      ['get_task_conversation_kandev', { title: "Read a task's conversation", ...READS }],
      ['list_workspaces_kandev', { title: 'List workspaces', ...READS }],
    ]);
  });

  it('take these fields', () => {
    expect(tools.external.map((tool) => [Object.keys(tool.inputSchema.properties), tool.inputSchema.required])).toEqual(
      [
        [['workspace_id', 'created_since', 'cursor', 'limit'], []],
        [['pending_id', 'answers', 'rejected', 'reject_reason', 'task_id'], ['pending_id']],
        [['workspace_id', 'cursor', 'limit'], []],
        [['task_id', 'session_id', 'cursor', 'limit'], ['task_id']],
        [[], []],
      ],
    );
  });
});

describe('MCP-SURFACES: the tools of the in-session surface', () => {
  it('are these two, with these annotations', async () => {
    const hints = { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true };
    expect((await listed('/mcp/sessions/s1')).map(({ name, annotations }) => [name, annotations])).toEqual([
      ['ask_user_question_kandev', { title: 'Ask a person a question', ...hints }],
      ['wait_for_answer_kandev', { title: 'Wait for the answer to a question asked before', ...hints }],
    ]);
  });

  it('take these fields', () => {
    expect(tools.session.map((tool) => [Object.keys(tool.inputSchema.properties), tool.inputSchema.required])).toEqual([
      [['questions', 'context', 'context_paragraphs', 'timeout_seconds'], ['questions']],
      [['pending_id', 'timeout_seconds'], ['pending_id']],
    ]);
  });
});

describe('MCP-TOOLS: every tool', () => {
  it('is listed with its exact schemas and descriptions', async () => {
    expect([...(await listed('/mcp')), ...(await listed('/mcp/sessions/s1'))]).toMatchSnapshot();
  });

  it('has valid schemas, closed wherever they describe an input', () => {
    const ajv = addFormats.default(new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false }));
    for (const tool of all) {
      ajv.compile(tool.inputSchema);
      ajv.compile(tool.outputSchema);
      for (const schema of objectSchemasIn(tool.inputSchema))
        expect(schema).toMatchObject({ additionalProperties: false });
      expect(tool.outputSchema.type).toBe('object');
    }
  });

  it('describes itself and each of its fields, for a model that has read nothing else', () => {
    const names = all.map((tool) => tool.name);
    for (const tool of all) {
      expect(tool.description.length).toBeGreaterThan(150);
      for (const [field, schema] of Object.entries(tool.inputSchema.properties)) {
        expect([tool.name, field, schema.description]).toEqual([tool.name, field, expect.any(String)]);
      }
      // What it points at must be there on the same surface.
      const pointedAt = tool.description.match(/\w+_kandev/g) ?? [];
      for (const name of pointedAt) expect(names).toContain(name);
      for (const name of pointedAt) expect(tools[tool.surface].map((other) => other.name)).toContain(name);
    }
  });

  it('is on one surface only', () => {
    expect(new Set(all.map((tool) => tool.name)).size).toBe(7);
    for (const [surface, onIt] of Object.entries(tools)) for (const tool of onIt) expect(tool.surface).toBe(surface);
  });
});

function objectSchemasIn(schema: unknown): object[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const inside = Object.values(schema).flatMap(objectSchemasIn);
  return 'type' in schema && schema.type === 'object' ? [schema, ...inside] : inside;
}
