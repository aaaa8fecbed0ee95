import { describe, expect, it } from '@jest/globals';
import { differenceBetween, fillIn, planOf, type Recording, type Statement } from '../../bench/lib/recording.js';

const AT = Date.parse('2026-05-01T10:00:00.000Z');

function statement(text: string, values: Statement['values'] = null, more: Partial<Statement> = {}): Statement {
  return { role: 'writer', method: 'run', text, values, name: '', overlaps: [], rows: 0, ...more };
}

function recording(pendingId: string, statements: readonly Statement[]): Recording {
  return { statements, ids: [pendingId], from: AT, to: AT + 20 };
}

const NEW_IDS = ['11111111-2222-4333-8444-555555555555', '66666666-7777-4888-9999-000000000000'] as const;

/** A claim and a new turn, as the product would send them for one bundle. */
function answer(pendingId: string, turnId: string, at: string): readonly Statement[] {
  return [
    statement('BEGIN; SET LOCAL statement_timeout = 4987'),
    statement('UPDATE m SET metadata = $2, updated_at = $3 WHERE pending_id = $1', [
      pendingId,
      `{"pending_id":"${pendingId}","at":"2026-01-01T00:00:00.000Z"}`,
      at,
    ]),
    statement('INSERT INTO turns (id, from_id, priority) VALUES ($1, $2, $3)', [turnId, `${turnId}/${pendingId}`, 3]),
    statement('COMMIT'),
  ];
}

describe('what the bare server sends', () => {
  const product = answer('first', NEW_IDS[0], '2026-05-01T10:00:00.007Z');

  it('is the same whatever the values and the time that is left of a budget', () => {
    const again = answer('second', NEW_IDS[1], '2026-05-01T10:00:09.000Z').map((sent) =>
      sent.text.startsWith('BEGIN') ? { ...sent, text: sent.text.replace('4987', '12') } : sent,
    );
    expect(differenceBetween(product, again)).toBeUndefined();
  });

  it.each<[string, (sent: Statement[]) => void]>([
    [
      'a text',
      (sent) => sent.splice(1, 1, { ...product[1]!, text: product[1]!.text.replace('WHERE', 'WHERE 1 = 1 AND') }),
    ],
    ['a number in a text that is no limit', (sent) => sent.splice(3, 1, { ...product[3]!, text: 'COMMIT 2' })],
    ['the order', (sent) => sent.splice(1, 2, product[2]!, product[1]!)],
    ['a statement that is left out', (sent) => sent.splice(1, 1)],
    ['one that is added', (sent) => sent.push(statement('SELECT 1'))],
    ['where a transaction ends', (sent) => sent.splice(2, 0, sent.pop()!)],
    ['the connection', (sent) => sent.splice(1, 1, { ...product[1]!, role: 'reader' })],
    ['the method of the driver', (sent) => sent.splice(1, 1, { ...product[1]!, method: 'all' })],
    ['being prepared', (sent) => sent.splice(1, 1, { ...product[1]!, name: 'prepared' })],
    ['how many rows it changes', (sent) => sent.splice(1, 1, { ...product[1]!, rows: 1 })],
  ])('is not the same when it differs in %s', (_, spoil) => {
    const sent = [...product];
    spoil(sent);
    expect(differenceBetween(product, sent)).toMatch(/^statement \d is\n/);
  });
});

describe('a recorded answer that is replayed for another bundle', () => {
  const first = recording('first', answer('first', NEW_IDS[0], '2026-05-01T10:00:00.007Z'));
  const second = recording('second', answer('second', NEW_IDS[1], '2026-05-01T10:00:00.015Z'));

  it("has that bundle's ids, new ids for new rows, and its own time; older times and numbers stay", () => {
    const plan = planOf(first, second);
    const values = plan.statements.map((planned) =>
      planned.values === null ? null : fillIn(planned.values, ['third'], (index) => `new-${index}`, 'now'),
    );
    expect(values).toEqual([
      null,
      ['third', '{"pending_id":"third","at":"2026-01-01T00:00:00.000Z"}', 'now'],
      ['new-0', 'new-0/third', 3],
      null,
    ]);
  });

  it('cannot be made when the product does not send the same twice', () => {
    const other = recording('second', [...second.statements, statement('SELECT 1')]);
    expect(() => planOf(first, other)).toThrow('does not send the same twice');
  });

  it('cannot be made when a value differs in what nobody can rebuild', () => {
    const odd = second.statements.map((sent) =>
      sent.text.startsWith('UPDATE') ? { ...sent, values: ['second', '{"other":"text"}', 'x'] } : sent,
    );
    expect(() => planOf(first, recording('second', odd))).toThrow('cannot rebuild value');
  });
});
