import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { ROUTES, TOOLS } from '../http/matrix.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller } from '../support/callers.js';
import { mayResolve, watchClaims } from '../support/claim-watch.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { answersTo, ask, makeEstate, type Estate } from '../support/estate.js';
import { Stage } from '../support/stage.js';
import { StatementRecorder, type RecordedStatement } from '../support/statement-recorder.js';
import { until } from '../support/until.js';

const QUESTIONS = ['q1', 'q2'];

/** A document that a statement writes for a row of questions. */
interface Written {
  readonly in: string;
  readonly id: string;
  readonly status: string;
}

/** What `changeRows` binds: each row's id before its new document. */
function documentsIn({ in: name, params }: RecordedStatement): Written[] {
  return params.flatMap((param, index) => {
    if (typeof param !== 'string' || !param.startsWith('{"pending_id"')) return [];
    const { status } = JSON.parse(param) as { status: string };
    return [{ in: name, id: String(params[index - 1]), status }];
  });
}

const isResolved = (status: string | undefined): boolean => status === 'answered' || status === 'rejected';

describeEachEngine('P1: of all statements that the product sends', (engine) => {
  const recorder = new StatementRecorder();
  const stage = new Stage();
  let database: TestDatabase;
  let app: RunningApp;
  let rest: RestCaller;
  let mcp: McpCaller;
  beforeAll(async () => {
    database = await engine.createDatabase();
    const env = { PRE_CLAIM_BUDGET_MS: '60000', REATTACH_MS: '0' };
    app = await startApp(database, { env, recorder, wrap: stage.wrap });
    rest = new RestCaller(app.url);
    mcp = await McpCaller.open(app.url);
  });
  afterAll(() => app.close());

  const respond = (pendingId: string, outcome: object) => rest.post(`/clarification/${pendingId}/respond`, outcome);
  const asked = () => makeEstate(rest, { questions: QUESTIONS });

  /** Every way in which the product is known to move a question, through the surfaces. */
  async function live(): Promise<void> {
    for (const row of ROUTES) {
      const [method = ''] = row.route.split(' ');
      const { path, body } = row.call(await makeEstate(rest));
      if (!path.startsWith('/mcp') && row.streams !== true) await rest.send(method, path, body);
    }
    for (const row of TOOLS) {
      const estate = await makeEstate(rest);
      const tool = row.surface === 'external' ? mcp : await inSession(estate);
      await tool.call(row.tool, row.args(estate));
    }
    for (const outcome of [answersTo(QUESTIONS, 'mine'), { rejected: true, reject_reason: 'no' }]) {
      for (const surface of ['rest', 'mcp'] as const) {
        const send = (pendingId: string) =>
          surface === 'rest'
            ? respond(pendingId, outcome)
            : mcp.call('answer_question_kandev', { pending_id: pendingId, ...outcome });
        await send((await asked()).pendingId);
        await handedToWaiter(send);
        await besideAnotherBundle(send);
        await handOverFails(send);
        await afterTheTurnCompleted(send);
      }
    }
    const expired = await asked();
    await rest.make('PATCH', `/task-sessions/${expired.sessionId}`, { state: 'completed' });
  }

  async function inSession({ sessionId }: Estate): Promise<McpCaller> {
    return McpCaller.open(app.url, `/mcp/sessions/${sessionId}`);
  }

  async function handedToWaiter(send: (pendingId: string) => Promise<unknown>): Promise<void> {
    const estate = await asked();
    const tool = await inSession(estate);
    const waiting = tool.call('wait_for_answer_kandev', { pending_id: estate.pendingId });
    await until(async () => (await rest.get(`/task-sessions/${estate.sessionId}`)).json.state === 'waiting_for_input');
    await send(estate.pendingId);
    expect((await waiting).isError).toBe(false);
  }

  async function besideAnotherBundle(send: (pendingId: string) => Promise<unknown>): Promise<void> {
    const { sessionId, pendingId } = await asked();
    const other = await ask(rest, sessionId, QUESTIONS, 'another');
    await send(pendingId);
    await send(other);
  }

  /** The claim commits, its hand-over fails, and the bundle is given back and answered again. */
  async function handOverFails(send: (pendingId: string) => Promise<unknown>): Promise<void> {
    const { pendingId } = await asked();
    stage.fail('delivery.hand-over', 'begin', new Error('placed by hand'));
    await send(pendingId);
    await send(pendingId);
  }

  async function afterTheTurnCompleted(send: (pendingId: string) => Promise<unknown>): Promise<void> {
    const { sessionId, turnId, pendingId } = await asked();
    await rest.make('POST', `/task-sessions/${sessionId}/turns/${turnId}/complete`);
    await send(pendingId);
  }

  it('only the claim’s carry answered or rejected for a row that was not so before', async () => {
    await live();
    const statuses = new Map<string, string>();
    const offences: Written[] = [];
    const resolving = new Map<string, number>();
    for (const statement of recorder.statements) {
      for (const written of documentsIn(statement)) {
        if (isResolved(written.status) && statuses.get(written.id) !== written.status) {
          resolving.set(written.in, (resolving.get(written.in) ?? 0) + 1);
          if (written.in !== 'bundle.claim') offences.push(written);
        }
        statuses.set(written.id, written.status);
      }
    }
    expect(offences).toEqual([]);
    expect([...resolving.keys()]).toEqual(['bundle.claim']);
    expect(resolving.get('bundle.claim')).toBeGreaterThan(40);
    // It was a broad run: others have written the documents of resolved rows again, and given some back.
    const others = recorder.statements.filter((statement) => statement.in !== 'bundle.claim');
    const rewriting = new Set(others.filter(({ sql, params }) => mayResolve(sql, params)).map((one) => one.in));
    expect([...rewriting]).toEqual(['delivery.hand-over']);
    const names = new Set(recorder.statements.map((one) => one.in));
    expect([...names]).toEqual(expect.arrayContaining(['bundle.cancel', 'delivery.restore', 'session.update']));
    expect(names.size).toBeGreaterThan(15);
  }, 60_000);

  describe('and the watch that runs in every test', () => {
    it.each([
      [
        'by a document',
        (id: string, document: string) => [
          `UPDATE task_session_messages SET metadata = $2 WHERE id = $1`,
          [id, document],
        ],
      ],
      [
        'in the statement’s own text',
        (id: string) => [
          `UPDATE task_session_messages SET metadata = '{"pending_id":"x","question_id":"q1","status":"rejected"}' WHERE id = $1`,
          [id],
        ],
      ],
    ] as [string, (id: string, document: string) => [string, string[]]][])(
      'fails a transaction that would resolve a row %s',
      async (_, statement) => {
        const { pendingId } = await asked();
        const { rows } = await database.sql<{ id: string; metadata: string }>(
          `SELECT id, metadata FROM task_session_messages
           WHERE ${database.dialect.metadataText('metadata', 'pending_id')} = $1`,
          [pendingId],
        );
        const [{ id, metadata } = { id: '', metadata: '' }] = rows;
        const [sql, params] = statement(id, metadata.replace('"pending"', '"answered"'));
        const run = watchClaims(database.unitOfWork).run('bundle.other', Deadline.after(10_000), (tx) =>
          tx.query(sql, params),
        );
        await expect(run).rejects.toThrow('P1: bundle.other made');
        const after = await rest.get(`/clarification/${pendingId}`);
        expect(after.json).toMatchObject({ status: 'pending', active: true });
      },
    );
  });
});
