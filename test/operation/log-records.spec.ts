import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { TemporarilyUnavailableError } from '../../src/common/domain-error.js';
import { databaseErrorOf } from '../../src/persistence/db-error.js';
import { openSqliteWriter } from '../../src/persistence/sqlite/sqlite-data-sources.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Heard } from '../support/callers.js';
import { dumpOf } from '../support/dump.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { readerWith } from '../support/reader-with.js';
import { Stage } from '../support/stage.js';
import { until } from '../support/until.js';

type LogRecord = Readonly<Record<string, unknown>>;

/** What somebody said or must keep to themselves: recognisable wherever it turns up. */
class Words {
  readonly all: string[] = [];

  say(what: string): string {
    const word = `Zq${what}${this.all.length}qZ`;
    this.all.push(word);
    return word;
  }

  /** One that the product has made up. */
  keep(secret: string): string {
    this.all.push(secret);
    return secret;
  }
}

describeEachEngine('the log of a whole run', (engine) => {
  const words = new Words();
  const failures: Heard[] = [];
  let database: TestDatabase;
  let app: RunningApp;
  let records: LogRecord[];

  beforeAll(async () => {
    database = await engine.createDatabase();
    const url = new URL(database.url);
    if (engine.name === 'postgres') url.password = words.say('databasepassword');
    const stage = new Stage();
    const failing: { sql: string; error: Error } = { sql: '', error: new Error() };
    app = await startApp(
      { url: engine.name === 'postgres' ? url.href : database.url },
      {
        authMode: 'enforced',
        env: { WEBHOOK_ALLOW_PRIVATE: 'true' },
        wrap: stage.wrap,
        wrapReader: (reader) =>
          readerWith(reader, (sql) => {
            if (failing.sql !== '' && sql.includes(failing.sql)) throw failing.error;
          }),
      },
    );
    const user = await app.createUser(words.say('username'));
    words.keep(user.token);
    const rest = new RestCaller(app.url, user.token);

    await failLogins(rest);
    const session = await settle(rest);
    const agent = new RestCaller(app.url, words.keep(session.agent_token));
    await converse(rest, agent, session.id);
    await mistakes(rest, agent, session.id);

    // From here on the database fails, with what it was given at hand.
    await refuseWrites(database);
    const turn = await ask(agent, session.id);
    failures.push(turn);
    failures.push(await rest.post(`/task-sessions/${session.id}/messages`, { content: words.say('message') }));
    const mcp = await McpCaller.open(app.url, `/mcp/sessions/${session.id}`, session.agent_token);
    await mcp.call('ask_user_question_kandev', { questions: [question()] });
    await allowWrites(database);
    const open = await asked(agent, session.id);
    stage.fail('bundle.claim', 'commit', driverError(words.say('bound')));
    failures.push(await rest.post(`/clarification/${open}/respond`, answer()));
    stage.fail('delivery.hand-over', 'commit', databaseErrorOf('postgres', driverError(words.say('bound'))));
    failures.push(await rest.post(`/clarification/${open}/respond`, answer()));
    failing.sql = 'task_session_messages';
    failing.error = driverError(words.say('bound'));
    failures.push(await rest.get(`/clarification/${open}?`));
    failing.error = new TemporarilyUnavailableError('away', { cause: driverError(words.say('bound')) });
    expect((await rest.get(`/clarification/${open}`)).status).toBe(503);
    failing.sql = '';
    await until(async () => (await rest.post(`/clarification/${open}/respond`, answer())).status === 200);
    records = app.logged.filter(({ level }) => level !== 'debug');
  });
  afterAll(() => app.close());

  it('NO-SECRETS: holds no word of anybody’s, no token and no password', async () => {
    const stored = JSON.stringify(await dumpOf(database));
    // What was said was stored, so that it could have been logged.
    expect(words.all.filter((word) => stored.includes(word)).length).toBeGreaterThan(15);
    const shown = records.map((record) => JSON.stringify(record));
    expect(words.all.flatMap((word) => shown.filter((record) => record.includes(word)))).toEqual([]);
  });

  it('NO-SECRETS: was long enough to say something: answers, failures of every kind, and what was made of them', () => {
    expect([...new Set(records.map(({ event }) => event))]).toEqual(
      expect.arrayContaining([
        'clarification.response.phase',
        'delivery.failed',
        'mcp.tool_failed',
        'request.failed',
        'request.unavailable',
        'webhook.failed',
      ]),
    );
  });

  it('NO-SECRETS: has errors with their causes and codes, and nothing that a driver adds to them', () => {
    const errors = records.flatMap(({ error }) => withCauses(error));
    expect(errors.length).toBeGreaterThan(6);
    const known = ['type', 'message', 'code', 'stack', 'cause'];
    expect(errors.flatMap((error) => Object.keys(error)).filter((key) => !known.includes(key))).toEqual([]);
  });

  it('REQUEST-ID: says of every failure which request it was, as its body and its header do', () => {
    expect(failures.length).toBeGreaterThan(4);
    for (const { status, json, headers } of failures) {
      expect([status, json.code, json.request_id]).toEqual([500, 'internal', headers.get('x-request-id')]);
      const [record] = records.filter(
        ({ event, request_id: id }) => event === 'request.failed' && id === json.request_id,
      );
      expect(record).toMatchObject({ level: 'error', status: 500 });
    }
  });

  it('REQUEST-ID: is in every record, for all of this was in requests', () => {
    const without = records.filter(({ request_id: id }) => typeof id !== 'string');
    expect(without).toEqual([]);
  });

  async function failLogins(rest: RestCaller): Promise<void> {
    for (const token of [`clu_${words.say('wrongtoken')}`, words.say('notoken')]) {
      expect((await new RestCaller(rest.url, token).get('/tasks')).status).toBe(401);
    }
    const basic = await fetch(`${rest.url}/api/v1/tasks?token=${words.say('querytoken')}`, {
      headers: { authorization: `Basic ${words.say('basic')}` },
    });
    expect(basic.status).toBe(401);
  }

  async function settle(rest: RestCaller) {
    const workspace = await rest.make('POST', '/workspaces', { name: words.say('workspace') });
    const task = await rest.make('POST', '/tasks', {
      title: words.say('title'),
      description: words.say('description'),
      workspace_id: workspace.id,
    });
    const refused = [
      {
        mode: 'webhook',
        url: `https://${words.say('user')}:${words.say('password')}@example.org/?key=${words.say('key')}`,
      },
      { mode: 'webhook', url: 'https://example.org/hook', secret: words.say('secret') },
      { mode: words.say('mode') },
    ];
    for (const resume of refused) {
      expect((await rest.post(`/tasks/${task.id}/sessions`, { resume })).status).toBe(400);
    }
    await callInVain(rest, task.id);
    return rest.make('POST', `/tasks/${task.id}/sessions`, { is_primary: false });
  }

  /** Answers for an agent that is called where nobody listens: with a secret of the caller's, and with one made. */
  async function callInVain(rest: RestCaller, taskId: string): Promise<void> {
    const url = `http://127.0.0.1:1/${words.say('path')}?key=${words.say('urlkey')}`;
    const secret = words.keep(`whsec_${Buffer.from(words.say('longerthantwentyfourbytes')).toString('base64')}`);
    const sessions = `/tasks/${taskId}/sessions`;
    const called = await rest.make('POST', sessions, { is_primary: false, resume: { mode: 'webhook', url, secret } });
    const moved = await rest.make('POST', sessions, { is_primary: false, resume: { mode: 'webhook', url } });
    words.keep(moved.webhook_secret);
    for (const { id, agent_token: token } of [called, moved]) {
      const open = await asked(new RestCaller(rest.url, words.keep(token)), id);
      const answered = await rest.post(`/clarification/${open}/respond`, answer());
      expect(answered.json.retryable).toBe(true);
      failures.push(answered);
    }
  }

  /** Asked and answered live, declined with a reason, answered into the mailbox, and said without being asked. */
  async function converse(rest: RestCaller, agent: RestCaller, sessionId: string): Promise<void> {
    const live = await asked(agent, sessionId);
    const wait = agent.get(`/clarification/${live}/wait`);
    await until(async () => (await agent.get(`/task-sessions/${sessionId}`)).json.state === 'waiting_for_input');
    await rest.make('POST', `/clarification/${live}/respond`, answer());
    expect((await wait).status).toBe(200);
    const declined = await asked(agent, sessionId);
    const declining = agent.get(`/clarification/${declined}/wait`);
    await until(async () => (await agent.get(`/task-sessions/${sessionId}`)).json.state === 'waiting_for_input');
    const reject = { rejected: true, reject_reason: words.say('reason') };
    await rest.make('POST', `/clarification/${declined}/respond`, reject);
    expect((await declining).json.reject_reason).toBe(reject.reject_reason);
    await rest.make('POST', `/task-sessions/${sessionId}/turns`, { prompt: words.say('prompt') });
    const mailed = await asked(agent, sessionId);
    const mcp = await McpCaller.open(rest.url, '/mcp', rest.token);
    expect((await mcp.call('answer_question_kandev', { pending_id: mailed, ...answer() })).isError).toBe(false);
    await mcp.call('get_task_conversation_kandev', { task_id: words.say('notask') });
    const { turn } = await agent.make('GET', `/task-sessions/${sessionId}/mailbox`);
    await agent.make('POST', `/task-sessions/${sessionId}/mailbox/${turn.id}/ack`);
    await rest.make('POST', `/task-sessions/${sessionId}/messages`, {
      content: words.say('late'),
      client_message_id: words.say('messageid'),
    });
  }

  async function mistakes(rest: RestCaller, agent: RestCaller, sessionId: string): Promise<void> {
    const open = await asked(agent, sessionId);
    const wrong = [
      { [words.say('field')]: words.say('value') },
      { answers: words.say('noarray') },
      { answers: [{ question_id: words.say('question'), custom_text: words.say('text') }] },
      { rejected: true, reject_reason: words.say('long').repeat(400) },
    ];
    for (const outcome of wrong) expect((await rest.post(`/clarification/${open}/respond`, outcome)).status).toBe(400);
    const mcp = await McpCaller.open(rest.url, '/mcp', rest.token);
    for (const outcome of wrong) await mcp.call('answer_question_kandev', { pending_id: open, ...outcome });
    await rest.get(`/clarification?cursor=${words.say('cursor')}`);
    await rest.make('POST', `/clarification/${open}/cancel`);
  }

  function question() {
    const said = (what: string) => words.say(what);
    return {
      title: said('questiontitle'),
      prompt: said('questionprompt'),
      options: [
        { option_id: 'left', label: said('label'), description: said('optiontext') },
        { option_id: 'right', label: said('label') },
      ],
    };
  }

  function ask(agent: RestCaller, sessionId: string): Promise<Heard> {
    const input = { session_id: sessionId, questions: [question()], context: words.say('context') };
    return agent.post('/clarification/request', input);
  }

  async function asked(agent: RestCaller, sessionId: string): Promise<string> {
    const answered = await ask(agent, sessionId);
    expect(answered.status).toBe(200);
    return answered.json.pending_id;
  }

  function answer() {
    return { answers: [{ question_id: 'q1', selected_options: ['left'], custom_text: words.say('answer') }] };
  }
});

/** As pg and TypeORM make them: with the statement, what was bound to it, and a message that quotes it. */
function driverError(bound: string): Error {
  return Object.assign(new Error(`invalid input syntax for type json: "${bound}"`), {
    name: 'QueryFailedError',
    query: `UPDATE task_session_messages SET metadata = '${bound}'`,
    parameters: [bound],
    driverError: Object.assign(new Error(`invalid input: '${bound}'`), { code: '22P02', detail: bound, where: bound }),
  });
}

/** From now on the database itself refuses every message, and quotes it if it can. */
async function refuseWrites(database: TestDatabase): Promise<void> {
  if (database.engine === 'sqlite') {
    await onSqlite(
      database,
      `CREATE TRIGGER refused BEFORE INSERT ON task_session_messages
       BEGIN SELECT RAISE(ABORT, 'refused by a trigger'); END`,
    );
    return;
  }
  await onPostgres(
    database,
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $f$
       BEGIN RAISE EXCEPTION 'refused: %', NEW.content USING DETAIL = NEW.metadata, HINT = NEW.content; END $f$;
     CREATE TRIGGER refused BEFORE INSERT ON task_session_messages FOR EACH ROW EXECUTE FUNCTION refuse()`,
  );
}

async function allowWrites(database: TestDatabase): Promise<void> {
  if (database.engine === 'sqlite') await onSqlite(database, 'DROP TRIGGER refused');
  else await onPostgres(database, 'DROP TRIGGER refused ON task_session_messages');
}

/** Past the unit of work, which takes no statement with another inside. */
async function onSqlite({ url }: TestDatabase, statement: string): Promise<void> {
  const dataSource = await openSqliteWriter(url.slice('sqlite:'.length), 5_000);
  await dataSource.query(statement);
  await dataSource.destroy();
}

async function onPostgres({ url }: TestDatabase, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(statement);
  await client.end();
}

function withCauses(error: unknown): object[] {
  if (typeof error !== 'object' || error === null) return [];
  return [error, ...withCauses((error as { cause?: unknown }).cause)];
}
