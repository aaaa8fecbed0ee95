import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startServerProcess } from '../process/server-process.js';
import { RestCaller, type Json } from '../support/callers.js';

export const run = promisify(execFile);

/** One server from its start to its end. */
export interface Trial {
  /** The session's mailbox after an answer that nobody waited for. */
  readonly mailbox: Json;
  readonly ended: { readonly code: number | null; readonly stdout: string; readonly stderr: string };
}

/**
 * Starts `command` in `folder`, asks and answers one question, and ends it by SIGTERM.
 *
 * @throws when it does not become ready, or refuses one of the requests
 */
export async function tryServer(command: readonly [string, ...string[]], folder: string): Promise<Trial> {
  const server = startServerProcess({}, folder, command);
  try {
    const url = /http:\/\/\S+?(?=,)/.exec(await server.firstLine)?.[0] ?? '';
    const rest = new RestCaller(url);
    await rest.make('GET', '/health/ready');
    const task = await rest.make('POST', '/tasks', { title: 'Try the package' });
    const session = await rest.make('POST', `/tasks/${task.id}/sessions`);
    const questions = [{ prompt: 'Does it run?', options: [{ label: 'Yes' }, { label: 'No' }] }];
    const asked = await rest.make('POST', '/clarification/request', { session_id: session.id, questions });
    const answers = [{ question_id: 'q1', selected_options: ['q1_opt1'] }];
    await rest.make('POST', `/clarification/${asked.pending_id}/respond`, { answers });
    const mailbox = await rest.make('GET', `/task-sessions/${session.id}/mailbox`);
    server.child.kill('SIGTERM');
    const { code, stdout, stderr } = await server.ended;
    return { mailbox, ended: { code, stdout, stderr } };
  } finally {
    server.child.kill('SIGKILL');
    await server.ended;
  }
}
