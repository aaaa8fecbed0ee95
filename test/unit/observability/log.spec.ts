import { describe, expect, it } from '@jest/globals';
import { Log } from '../../../src/observability/log.js';
import type { LogLevel } from '../../../src/observability/log.js';
import { NestLog } from '../../../src/observability/nest-log.js';
import { runInRequest } from '../../../src/observability/request-context.js';

function recorder(level: LogLevel = 'info', format: 'json' | 'pretty' = 'json') {
  const lines: string[] = [];
  const log = new Log({ level, format, destination: { write: (line) => void lines.push(line) } });
  return { log, lines, records: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

class QueryFailedError extends Error {
  readonly query = 'UPDATE task_session_messages SET metadata = $1';
  readonly parameters = ['the answer is tea'];
  readonly code = '22P02';
  readonly detail = 'Token "the answer is tea" is invalid.';
}

describe('Log', () => {
  it('writes an event with its fields, a readable time and level, and the id of the request around it', async () => {
    const { log, records } = recorder();
    await runInRequest({ requestId: 'r-1' }, async () => {
      await Promise.resolve();
      log.info('bundle.claimed', { pending_id: 'p-1' });
    });
    log.info('server.started');
    expect(records()).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        request_id: 'r-1',
        pending_id: 'p-1',
        event: 'bundle.claimed',
      },
      { level: 'info', time: expect.any(String), event: 'server.started' },
    ]);
  });

  it('leaves out what is below the level', () => {
    const { log, lines } = recorder('warn');
    log.info('quiet');
    log.warn('loud');
    expect(lines).toHaveLength(1);
    expect(log.debugs).toBe(false);
  });

  it('NO-SECRETS: logs an error with its causes, and no statement, parameter or quoted value of a driver', () => {
    const { log, lines, records } = recorder();
    const driver = new QueryFailedError('invalid input syntax for type json: "the answer is tea"');
    log.error('request.failed', { error: new Error('the claim failed', { cause: driver }) });
    expect(lines.join('')).not.toContain('tea');
    expect(lines.join('')).not.toContain('UPDATE');
    expect(records()[0]?.['error']).toMatchObject({
      type: 'Error',
      message: 'the claim failed',
      stack: expect.stringContaining('at '),
      cause: { message: 'invalid input syntax for type json: …', code: '22P02' },
    });
  });

  it('survives a circular chain of causes and a thrown value that is no error', () => {
    const { log, records } = recorder();
    const error = new Error('round');
    error.cause = error;
    log.error('a', { error });
    log.error('b', { error: 'my answer' });
    expect(records()[1]?.['error']).toEqual({ type: 'string', message: 'a value that is no Error was thrown' });
  });

  it('NO-SECRETS: hides a secret that was given as a field all the same', () => {
    const { log, lines } = recorder();
    log.info('x', { token: 'hunter2', session: { agent_token: 'hunter2' }, resume: { secret: 'hunter2' } });
    expect(lines.join('')).not.toContain('hunter2');
  });

  it('writes a line for a person when asked to', () => {
    const { log, lines } = recorder('info', 'pretty');
    log.info('bundle.claimed', { pending_id: 'p-1', note: 'two words', count: 2 });
    log.error('x', { error: new Error('broke') });
    expect(lines[0]).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} INFO {2}bundle\.claimed pending_id=p-1 note="two words" count=2\n$/,
    );
    expect(lines[1]).toMatch(/ERROR x error=\{"type":"Error","message":"broke"\}\n\s+at /);
  });
});

describe('NestLog', () => {
  it('keeps the chatter of a start, and its failure, out of info', () => {
    const { log, records } = recorder();
    const nest = new NestLog(log);
    nest.log('Mapped {/, GET} route', 'RouterExplorer');
    nest.error(new Error('no database'), undefined, 'ExceptionHandler');
    nest.warn('careful', 'Something');
    expect(records().map((record) => record['event'])).toEqual(['nest.warning']);
  });
});
