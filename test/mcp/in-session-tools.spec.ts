import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { askUserQuestionTool } from '../../src/mcp/tools/ask-user-question.tool.js';
import { waitForAnswerTool } from '../../src/mcp/tools/wait-for-answer.tool.js';
import { startEndpoint } from './support/endpoint-server.js';
import type { EndpointServer } from './support/endpoint-server.js';
import { FakeClarification } from './support/fake-clarification.js';

const QUESTIONS = [
  { prompt: 'Which database?', options: [{ label: 'SQLite' }, { label: 'PostgreSQL' }] },
  { prompt: 'Which port?', options: [{ label: '3000' }, { label: '8080' }] },
];
const NEXT =
  'Nobody has answered yet and the question stays open. Call wait_for_answer_kandev with ' +
  '{"pending_id":"pending-1"} to wait on; you need not ask again.';

let clarification: FakeClarification;
let server: EndpointServer;
let agent: Client;

async function start(
  hold: { askHoldMs?: number; waitTimeoutMs?: number; progressEveryMs?: number } = {},
): Promise<void> {
  server = await startEndpoint(
    [askUserQuestionTool(clarification, clarification), waitForAnswerTool(clarification, clarification)],
    {
      hold: { askHoldMs: 60_000, waitTimeoutMs: 60_000, progressEveryMs: 60_000, ...hold },
    },
  );
  agent = await server.connect('/mcp/sessions/s1');
  // The client checks results against output schemas that it knows.
  await agent.listTools();
}

beforeEach(() => {
  clarification = new FakeClarification();
});
afterEach(() => server.close());

function ask(args: object = {}, options: Parameters<Client['callTool']>[2] = {}): ReturnType<Client['callTool']> {
  return agent.callTool(
    { name: 'ask_user_question_kandev', arguments: { questions: QUESTIONS, ...args } },
    undefined,
    options,
  );
}

function wait(args: object): ReturnType<Client['callTool']> {
  return agent.callTool({ name: 'wait_for_answer_kandev', arguments: { ...args } });
}

describe('ask_user_question_kandev', () => {
  it('blocks until resolved and returns the answers by question id (ASK-RESULT)', async () => {
    await start();
    const asked = ask();
    await clarification.untilWaiting(1);
    clarification.answer('pending-1', {
      answers: [
        { question_id: 'q1', selected_options: ['q1_opt2'], custom_text: 'version 18' },
        { question_id: 'q2', selected_options: [], custom_text: '' },
      ],
    });
    expect((await asked).structuredContent).toEqual({
      q1: { selected_options: ['q1_opt2'], selected_labels: ['PostgreSQL'], custom_text: 'version 18', answered: true },
      q2: { selected_options: [], selected_labels: [], custom_text: '', answered: false },
    });
  });

  it('returns a declined bundle with its reason (ASK-RESULT)', async () => {
    await start();
    const asked = ask();
    await clarification.untilWaiting(1);
    clarification.answer('pending-1', { rejected: true, reject_reason: 'not now' });
    expect((await asked).structuredContent).toEqual({ rejected: true, reject_reason: 'not now' });
  });

  it('takes context_paragraphs in place of context, joined by blank lines (ASK-CONTEXT)', async () => {
    await start();
    const asked = ask({ context: 'left out', context_paragraphs: ['one', 'two'], timeout_seconds: 0 });
    const joined = ask({ context: 'one\n\ntwo', timeout_seconds: 0 });
    const empty = ask({ context: 'kept', context_paragraphs: [], timeout_seconds: 0 });
    const kept = ask({ context: 'kept', timeout_seconds: 0 });
    const ids = (await Promise.all([asked, joined, empty, kept])).map(
      (result) => (result.structuredContent as { pending_id: string }).pending_id,
    );
    expect(ids[0]).toBe(ids[1]);
    expect(ids[2]).toBe(ids[3]);
    expect(ids[0]).not.toBe(ids[2]);
  });

  it('without a progress token returns pending after ASK_HOLD_MS, as a normal result (HOLD)', async () => {
    await start({ askHoldMs: 5 });
    const result = await ask({ timeout_seconds: 30 });
    expect(result.isError).toBeUndefined();
    expect(result.structuredContent).toEqual({ status: 'pending', pending_id: 'pending-1', next: NEXT });
    expect(clarification.waits).toEqual([]);
  });

  it('with timeout_seconds 0 returns at once, pending or answered', async () => {
    await start();
    expect((await ask({ timeout_seconds: 0 })).structuredContent).toMatchObject({ status: 'pending' });
    clarification.answer('pending-1', { rejected: true });
    expect((await ask({ timeout_seconds: 0 })).structuredContent).toEqual({ rejected: true, reject_reason: '' });
  });

  it('with a progress token is held beyond ASK_HOLD_MS, reporting strictly rising progress with the pending id (HOLD)', async () => {
    await start({ askHoldMs: 1, progressEveryMs: 2 });
    const reports: { progress: number; message?: string | undefined }[] = [];
    let enough: () => void = () => undefined;
    const fiveReports = new Promise<void>((resolve) => (enough = resolve));
    const asked = ask(
      {},
      {
        onprogress: (report) => {
          reports.push(report);
          if (reports.length === 5) enough();
        },
      },
    );
    await fiveReports;
    expect(clarification.waits).toEqual(['pending-1']);
    clarification.answer('pending-1', { rejected: true });
    expect((await asked).structuredContent).toMatchObject({ rejected: true });
    const progress = reports.map((report) => report.progress);
    expect(progress).toEqual([...new Set(progress)].sort((a, b) => a - b));
    expect(reports[0]?.message).toBe('waiting for somebody to answer; pending_id pending-1');
  });

  it('with a progress token returns pending at the wait cap', async () => {
    await start({ askHoldMs: 1, waitTimeoutMs: 20 });
    const result = await ask({ timeout_seconds: 60 }, { onprogress: () => undefined });
    expect(result.structuredContent).toMatchObject({ status: 'pending' });
  });

  it('frees its waiter at once when the client cancels; asking the same again rejoins the question (MCP-GONE)', async () => {
    await start();
    const cancel = new AbortController();
    const cancelled = ask({}, { signal: cancel.signal });
    await clarification.untilWaiting(1);
    cancel.abort('changed my mind');
    await expect(cancelled).rejects.toThrow('changed my mind');
    await clarification.untilWaiting(0);
    const again = ask();
    await clarification.untilWaiting(1);
    expect(clarification.waits).toEqual(['pending-1']);
    clarification.answer('pending-1', { rejected: true });
    expect((await again).structuredContent).toMatchObject({ rejected: true });
  });

  it('ends with pending when the service stops', async () => {
    await start();
    const asked = ask();
    await clarification.untilWaiting(1);
    await server.stop();
    expect((await asked).structuredContent).toMatchObject({ status: 'pending', pending_id: 'pending-1' });
  });

  it('names the field that is wrong, and asks nothing (UNKNOWN-FIELDS, BAD-TYPES, BAD-TEXT)', async () => {
    await start();
    const wrong = [
      { args: { question: [] }, text: 'validation_failed: question is not a known field' },
      { args: { questions: 'q' }, text: 'validation_failed: questions must be a list' },
      { args: { questions: [] }, text: 'validation_failed: questions must not be empty' },
      {
        args: { questions: [{ prompt: 'p', options: [{ label: 'a' }, { lable: 'b' }] }] },
        text: 'validation_failed: questions[0].options[1].lable is not a known field',
      },
      { args: { timeout_seconds: -1 }, text: 'validation_failed: timeout_seconds must be at least 0' },
      { args: { timeout_seconds: 1.5 }, text: 'validation_failed: timeout_seconds must be a whole number' },
      { args: { timeout_seconds: '5' }, text: 'validation_failed: timeout_seconds must be a whole number' },
      { args: { timeout_seconds: null }, text: 'validation_failed: timeout_seconds must not be null' },
      {
        args: { context: 'nul \u0000' },
        text: 'validation_failed: context must not contain U+0000 or a lone surrogate',
      },
      {
        args: { context_paragraphs: ['x'.repeat(9_000), 'y'.repeat(9_000)] },
        text: 'validation_failed: context_paragraphs must not be longer than 16000 characters together',
      },
      { args: { session_id: 's2' }, text: 'validation_failed: session_id is not a known field' },
    ];
    for (const { args, text } of wrong) {
      expect(await ask(args)).toEqual({ content: [{ type: 'text', text }], isError: true });
    }
    expect(clarification.waits).toEqual([]);
  });
});

describe('wait_for_answer_kandev', () => {
  it('returns the same result as asking, as often as it is called (WAIT-TOOL)', async () => {
    await start();
    await ask({ timeout_seconds: 0 });
    const waiting = wait({ pending_id: 'pending-1' });
    await clarification.untilWaiting(1);
    clarification.answer('pending-1', { rejected: true, reject_reason: 'no' });
    const declined = { rejected: true, reject_reason: 'no' };
    expect((await waiting).structuredContent).toEqual(declined);
    expect((await wait({ pending_id: 'pending-1', timeout_seconds: 0 })).structuredContent).toEqual(declined);
  });

  it('ends with pending, not with an error', async () => {
    await start();
    await ask({ timeout_seconds: 0 });
    expect(await wait({ pending_id: 'pending-1', timeout_seconds: 0 })).toMatchObject({
      structuredContent: { status: 'pending', pending_id: 'pending-1', next: NEXT },
    });
  });

  it('knows no bundle of another session, and says that before it looks at the other fields (A3, ORDER)', async () => {
    await start();
    await ask({ timeout_seconds: 0 });
    const other = await server.connect('/mcp/sessions/s2');
    const notFound = {
      content: [{ type: 'text', text: 'not_found: clarification request not found' }],
      isError: true,
    };
    for (const pending_id of ['pending-1', 'missing', '', '\u0000', 'x'.repeat(10_000), '%ZZ', 'ü']) {
      for (const rest of [{}, { timeout_seconds: 0 }, { timeout_seconds: 'soon' }, { more: 1 }]) {
        const call = { name: 'wait_for_answer_kandev', arguments: { pending_id, ...rest } };
        expect(await other.callTool(call)).toEqual(notFound);
      }
    }
  });

  it('names the field that is wrong (UNKNOWN-FIELDS, BAD-TYPES)', async () => {
    await start();
    await ask({ timeout_seconds: 0 });
    const wrong = [
      { args: {}, text: 'validation_failed: pending_id is required' },
      { args: { pending_id: 5 }, text: 'validation_failed: pending_id must be text' },
      { args: { pending_id: 'pending-1', timeout: 5 }, text: 'validation_failed: timeout is not a known field' },
    ];
    for (const { args, text } of wrong) {
      expect(await wait(args)).toEqual({ content: [{ type: 'text', text }], isError: true });
    }
  });
});
