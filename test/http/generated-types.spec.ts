import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { basename } from 'node:path';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { startApp } from '../support/app.js';
import type { RunningApp } from '../support/app.js';
import { describeEngine } from '../support/engines.js';

/** What somebody would write who has nothing but the types made from the document. */
const CLIENT = `
import type { paths, components } from './api.js';

type Method = 'get' | 'post' | 'patch' | 'delete';
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;
type Json<T> = T extends { content: { 'application/json': infer Body } } ? Body : undefined;
type Body<O> = O extends { requestBody: { content: { 'application/json': infer B } } } ? B
  : O extends { requestBody?: { content: { 'application/json': infer B } } } ? B | undefined : undefined;
type Query<O> = O extends { parameters: { query?: infer Q } } ? Q : never;
type Reply<O> = O extends { responses: infer R }
  ? { [S in keyof R & number]: { status: S; body: Json<R[S]> } }[keyof R & number] : never;
interface Sent<O> { params?: Record<string, string>; query?: Query<O>; body?: Body<O> }

export declare function call<P extends keyof paths, M extends Method>(
  method: M, path: P, sent?: Sent<Operation<P, M>>): Promise<Reply<Operation<P, M>>>;

const never = (value: never): never => { throw new Error(String(value)); };

export async function main(): Promise<string> {
  const workspace = await call('post', '/api/v1/workspaces', { body: { name: 'Mine' } });
  const task = await call('post', '/api/v1/tasks', { body: { title: 'T', description: '', workspace_id: '' } });
  if (task.status !== 201 || workspace.status !== 201) return '';
  const pending: 'clarification' | null = task.body.task_pending_action;
  const state: 'open' | 'completed' | 'cancelled' = task.body.state;
  const session = await call('post', '/api/v1/tasks/{id}/sessions', {
    params: { id: task.body.id }, body: { is_primary: true, resume: { mode: 'pull' } } });
  if (session.status !== 201) return '';
  const token: string = session.body.agent_token;
  const asked = await call('post', '/api/v1/clarification/request', {
    body: {
      session_id: session.body.id,
      context: 'why',
      questions: [{ prompt: 'Which?', options: [{ label: 'A' }, { option_id: 'b', label: 'B', description: '' }] }],
    },
  });
  if (asked.status !== 200) return asked.body.error;
  const page = await call('get', '/api/v1/clarification', {
    query: { workspace_id: '', created_since: '2026-01-31T09:00:00Z', cursor: '', limit: 5 } });
  const options = page.status === 200
    ? page.body.bundles.flatMap((bundle) => bundle.questions.flatMap((question) => question.options)) : [];
  const ids: string[] = options.map((option) => option.option_id);
  const sent = await call('post', '/api/v1/task-sessions/{id}/messages', { body: { content: 'x', client_message_id: 'y' } });
  const admission: 'sent' | 'queued' | undefined =
    sent.status === 201 || sent.status === 200 ? sent.body.admission : undefined;
  const ended = await call('delete', '/api/v1/tasks/{id}', { params: { id: task.body.id } });
  const nothing = ended.status === 204 ? ended.body : undefined;
  const mailbox = await call('get', '/api/v1/task-sessions/{id}/mailbox', { query: { wait: 1 } });
  const prompt: string | undefined = mailbox.status === 200 ? mailbox.body.prompt : undefined;
  return [pending, state, token, ids, admission, nothing, prompt, await answer(asked.body.pending_id)].join();
}

/** Every status there is, with the codes that it can mean. */
async function answer(id: string): Promise<string> {
  const reply = await call('post', '/api/v1/clarification/{id}/respond', {
    params: { id }, body: { answers: [{ question_id: 'q1', selected_options: ['b'], custom_text: '' }] } });
  switch (reply.status) {
    case 200: {
      const { success, claimed, delivered, status, response } = reply.body;
      const texts: string[] = response.answers.map((entry) => entry.custom_text);
      const told: [true, boolean, boolean, 'answered' | 'rejected'] = [success, claimed, delivered, status];
      return [...told, ...texts, response.reject_reason, response.responded_at].join();
    }
    case 400: return exactly<'validation_failed'>(reply.body.code);
    case 401: return exactly<'unauthorized'>(reply.body.code);
    case 403: return exactly<'forbidden'>(reply.body.code);
    case 404: return exactly<'not_found'>(reply.body.code);
    case 409: return exactly<'not_active'>(reply.body.code);
    case 413: return exactly<'payload_too_large'>(reply.body.code);
    case 415: return exactly<'unsupported_media_type'>(reply.body.code);
    case 429: return exactly<'too_many_requests'>(reply.body.code);
    case 500: return reply.body.request_id + String(reply.body.retryable ?? '');
    case 503: return exactly<'temporarily_unavailable'>(reply.body.code);
    default: return never(reply);
  }
}

async function waited(id: string): Promise<string | undefined> {
  const reply = await call('get', '/api/v1/clarification/{id}/wait', { params: { id }, query: { timeout: 5 } });
  if (reply.status === 504) return exactly<'wait_timeout'>(reply.body.code);
  return reply.status === 200 ? reply.body.turn_id : undefined;
}

function exactly<Code extends string>(code: Code): Code { return code; }
export type Missing = components['schemas']['error_not_found'];
void waited;
`;

/** What the types must not let through, each alone. */
const MISTAKES = {
  'a path that is not there': `await call('get', '/api/v1/task');`,
  'a method that is not there': `(await call('patch', '/api/v1/tasks')).status;`,
  'a misspelt field of a body': `await call('post', '/api/v1/clarification/{id}/respond', { body: { answer: [] } });`,
  'a missing field of a body': `await call('post', '/api/v1/tasks', { body: { description: 'x' } });`,
  'a wrong type in a body': `await call('post', '/api/v1/workspaces', { body: { name: 5 } });`,
  'a value that is no choice': `await call('patch', '/api/v1/task-sessions/{id}', { body: { state: 'paused' } });`,
  'a misspelt parameter': `await call('get', '/api/v1/tasks', { query: { limits: 5 } });`,
  'a field that no response has': `const t = await call('get', '/api/v1/tasks/{id}'); if (t.status === 200) t.body.colour;`,
  'a status that cannot come': `if ((await call('get', '/api/v1/tasks/{id}')).status === 409) throw 1;`,
  'a code that cannot come': `const t = await call('get', '/api/v1/tasks/{id}'); if (t.status === 404 && t.body.code === 'conflict') throw 1;`,
};

describeEngine('sqlite', 'DOCS: the types that are generated from the document', (engine) => {
  let running: RunningApp;
  let found: readonly Complaint[];
  beforeAll(async () => {
    running = await startApp({ url: await engine.createUrl() });
    const mistakes = Object.values(MISTAKES).map((line, index) => `export async function f${index}() { ${line} }`);
    found = complaints({
      'api.ts': astToString(await openapiTS(await (await fetch(`${running.url}/docs-json`)).text())),
      'client.ts': CLIENT,
      'mistakes.ts': ["import { call } from './client.js';", ...mistakes].join('\n'),
    });
  });
  afterAll(() => running.close());

  it('compile, and serve a client for paths, inputs, bodies and every status', () => {
    expect(found.filter(({ file }) => file !== 'mistakes.ts')).toEqual([]);
  });

  it.each(Object.keys(MISTAKES).map((what, index) => [what, index + 2] as const))(
    'do not let %s through',
    (_, line) => {
      expect(found.filter((complaint) => complaint.file === 'mistakes.ts' && complaint.line === line)).not.toEqual([]);
    },
  );
});

interface Complaint {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** What the compiler says about sources that are only in memory. */
function complaints(sources: Readonly<Record<string, string>>): Complaint[] {
  const options: ts.CompilerOptions = {
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipDefaultLibCheck: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: [],
    lib: ['lib.es2023.d.ts'],
  };
  const disk = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...disk,
    directoryExists: () => true,
    fileExists: (path) => sources[basename(path)] !== undefined || disk.fileExists(path),
    getSourceFile: (path, language, ...rest) => {
      const text = sources[basename(path)];
      return text === undefined
        ? disk.getSourceFile(path, language, ...rest)
        : ts.createSourceFile(path, text, language);
    },
  };
  const program = ts.createProgram(
    Object.keys(sources).map((name) => `/memory/${name}`),
    options,
    host,
  );
  return ts.getPreEmitDiagnostics(program).map(({ messageText, file, start = 0 }) => ({
    file: basename(file?.fileName ?? ''),
    line: (file?.getLineAndCharacterOfPosition(start).line ?? 0) + 1,
    text: ts.flattenDiagnosticMessageText(messageText, ' '),
  }));
}
