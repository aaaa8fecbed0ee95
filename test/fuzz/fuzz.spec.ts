import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { describeEachEngine, describeEngine } from '../support/engines.js';
import { FaultyFront, type Fault } from './faulty-front.js';
import { fuzz } from './fuzz.js';
import { fuzzServer, withFuzzedServer } from './fuzzed-server.js';

const emptyFolder = () => mkdtempSync(join(process.env['CLARION_TEST_FOLDER'] ?? '', 'fuzz-'));

describeEachEngine('FUZZ: requests of every kind', (engine) => {
  test.each([
    { authMode: 'enforced', cases: 40 },
    { authMode: 'disabled', cases: 8 },
  ] as const)(
    'every route and tool answers as it says, and harms nobody, with authentication $authMode',
    async ({ authMode, cases }) => {
      const databaseUrl = await engine.createUrl();
      const { rows, faults } = await fuzzServer({ databaseUrl, authMode, folder: emptyFolder() }, { cases, seed: 4 });
      expect(faults).toEqual([]);
      expect(rows.map((row) => row.name)).toEqual(
        expect.arrayContaining(['GET /health/live', 'wait_for_answer_kandev']),
      );
      expect(rows.filter((row) => row.cases !== cases)).toEqual([]);
    },
    300_000,
  );
});

const ROUTE = 'GET /api/v1/tasks/{id}';
const TOOL = 'list_workspaces_kandev';

const PLANTED: readonly {
  readonly name: string;
  readonly fault: Fault;
  readonly told: RegExp;
  readonly only?: string;
}[] = [
  { name: 'a 500', fault: (reply) => ({ ...reply, status: 500 }), told: /status 500/ },
  { name: 'a status of its own', fault: (reply) => ({ ...reply, status: 418 }), told: /the document has no 418/ },
  { name: 'silence', fault: () => 'silence', told: /no reply within the deadline/ },
  { name: 'a cut connection', fault: () => 'cut', told: /the connection ended without a reply/ },
  {
    name: "another user's text",
    fault: (reply, { texts }) => ({ ...reply, body: JSON.stringify({ error: [...texts].join(), code: 'not_found' }) }),
    told: /it holds another user's text/,
  },
  {
    name: 'a token',
    fault: (reply) => ({ ...reply, body: reply.body.replace('"title":"', `"title":"clu_${'a'.repeat(43)}`) }),
    told: /it holds a secret/,
  },
  {
    name: 'a field that is not described',
    fault: (reply) => ({ ...reply, body: reply.body.replace('{', '{"more":1,') }),
    told: /must NOT have additional properties/,
  },
  {
    name: 'a stack',
    fault: ({ status, body }) => ({
      status,
      body: status < 400 ? body : body.replace('"error":"', '"error":"TypeError: x is not a function'),
    }),
    told: /an error shows the inside of the program/,
  },
  {
    name: 'a result that its tool does not describe',
    only: TOOL,
    fault: (reply) => ({
      ...reply,
      body: reply.body.replace('"structuredContent":{', '"structuredContent":{"more":1,'),
    }),
    told: /structuredContent must NOT have additional properties/,
  },
  {
    name: 'a refusal without a code',
    only: TOOL,
    fault: (reply) => ({ ...reply, body: reply.body.replace('"text":"validation_failed: ', '"text":"No: ') }),
    told: /an error that does not begin with a code/,
  },
  {
    name: 'an internal error over MCP',
    only: TOOL,
    fault: (reply) => ({ ...reply, body: reply.body.replace('"text":"validation_failed: ', '"text":"internal: ') }),
    told: /a tool failed with internal/,
  },
  {
    name: 'nothing but refusals',
    fault: (reply) => ({ ...reply, status: 403, body: JSON.stringify({ error: 'no', code: 'forbidden' }) }),
    told: /only 0 % of its cases got past validation/,
  },
];

describeEngine('sqlite', 'FUZZ: a run notices', (engine) => {
  test('each of the faults that a server may have', async () => {
    const databaseUrl = await engine.createUrl();
    await withFuzzedServer({ databaseUrl, authMode: 'enforced', folder: emptyFolder() }, async (server) => {
      const run = async (fault: Fault, only: string): Promise<readonly string[]> => {
        const front = await FaultyFront.start(
          server.url,
          ({ method, url = '' }) =>
            only === ROUTE ? method === 'GET' && /^\/api\/v1\/tasks\/[\w-]+$/.test(url) : url === '/mcp',
          fault,
        );
        try {
          const options = { ...server, url: front.url, cases: 30, seed: 4, only: [only], deadlineMs: 30_000 };
          return (await fuzz(options)).faults;
        } finally {
          await front.close();
        }
      };
      const none = await Promise.all([ROUTE, TOOL].map((only) => run((reply) => reply, only)));
      expect(none).toEqual([[], []]);
      const found = await Promise.all(
        PLANTED.map(async ({ name, fault, only = ROUTE }) => ({ name, faults: await run(fault, only) })),
      );
      expect(found).toEqual(
        PLANTED.map(({ name, told }) => ({ name, faults: expect.arrayContaining([expect.stringMatching(told)]) })),
      );
    });
  }, 300_000);

  test('a fault in the smallest request that shows it', async () => {
    const databaseUrl = await engine.createUrl();
    await withFuzzedServer({ databaseUrl, authMode: 'enforced', folder: emptyFolder() }, async (server) => {
      const isCreation = ({ method, url }: IncomingMessage) => method === 'POST' && url === '/api/v1/tasks';
      const front = await FaultyFront.start(server.url, isCreation, (reply, { sent }) =>
        /"description"/.test(sent) && !sent.includes('canary') ? { ...reply, status: 500 } : reply,
      );
      try {
        const { faults } = await fuzz({ ...server, url: front.url, cases: 40, seed: 4, only: ['POST /api/v1/tasks'] });
        const [fault] = faults.filter((each) => each.includes('status 500'));
        const body = Buffer.from(/echo (\S+) \| base64 -d/.exec(fault ?? '')?.[1] ?? '', 'base64').toString();
        expect(body).toContain('"description"');
        expect(body.length).toBeLessThan(200);
      } finally {
        await front.close();
      }
    });
  }, 300_000);
});

describe('FUZZ: the command', () => {
  test.each([
    ['--cases', '0'],
    ['--cases', 'many'],
    ['--seed', 'x'],
    ['--database', 'oracle'],
    ['--no-such'],
    ['more'],
  ])('%s %s is refused with exit 2 before anything starts', (...args) => {
    const loader = pathToFileURL(resolve('test/support/run-typescript.js')).href;
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', loader, resolve('test/fuzz/run.ts'), ...args],
      { encoding: 'utf8' },
    );
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain('usage: npm run fuzz');
  });

  test('stopped by a signal it ends with 130, and nothing of it is left in the temporary folder', async () => {
    const folder = emptyFolder();
    const loader = pathToFileURL(resolve('test/support/run-typescript.js')).href;
    const args = ['--import', loader, resolve('test/fuzz/run.ts'), '--cases', '5', '--database', 'sqlite'];
    const child = spawn(process.execPath, args, {
      env: { ...process.env, TMPDIR: folder },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    // The first progress: its server runs and is being asked.
    await once(child.stderr, 'data');
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^clarion-fuzz-/)]);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([130, null]);
    expect(readdirSync(folder)).toEqual([]);
  }, 120_000);
});
