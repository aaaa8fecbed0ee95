import { describe, expect, it } from '@jest/globals';
import { UNSCOPED, type Caller } from '../../src/identity/caller.js';
import type { Envelope, StreamedEvent } from '../../src/stream/envelope.js';
import { ReplayBuffer } from '../../src/stream/replay-buffer.js';

const ada = (tokenId: string): Caller => ({ kind: 'user', userId: 'ada', userName: 'ada', tokenId });

const eventAt = (position: number): StreamedEvent => ({
  type: 'turn.started',
  taskId: 'task',
  sessionId: 'session',
  turnId: `turn ${position}`,
});

const toldAt = (position: number, home: Envelope['home'] = 'unknown'): readonly [number, Envelope] => [
  position,
  { event: eventAt(position), home, pendingAction: null, revision: { epoch: 3, sequence: position } },
];

function bufferOf(capacity: number, count: number): ReplayBuffer {
  const buffer = new ReplayBuffer(capacity);
  for (let position = 1; position <= count; position += 1) buffer.add(eventAt(position));
  return buffer;
}

describe('EVENTS-OPEN: what a thousand streams cost', () => {
  it('an event is written once: whoever hears the same gets the same bytes, with whichever token', () => {
    const buffer = bufferOf(10, 2);
    buffer.tell(3, [toldAt(1, { workspaceId: '', ownerId: null }), toldAt(2, { workspaceId: '', ownerId: null })]);
    const first = buffer.after(0, ada('one')).bytes;
    expect(first.toString()).toContain('"turn_id":"turn 2"');
    expect(buffer.after(0, ada('another')).bytes).toBe(first);
    expect(buffer.after(0, UNSCOPED).bytes).not.toBe(first);
  });

  it('what was told is not what is told next', () => {
    const buffer = bufferOf(10, 1);
    buffer.tell(3, [toldAt(1)]);
    expect(buffer.after(0, UNSCOPED).position).toBe(1);
    buffer.add(eventAt(2));
    expect(buffer.after(1, UNSCOPED).position).toBe(1);
    buffer.tell(3, [toldAt(2)]);
    expect(buffer.after(1, UNSCOPED).bytes.toString()).toMatch(/^id: 3-2\n/);
    expect(buffer.after(0, UNSCOPED).bytes.toString()).toMatch(/^id: 3-1\n[^]*id: 3-2\n/);
  });

  it('a long rest comes in passages that together are all of it', () => {
    const count = 2_000;
    const buffer = bufferOf(count, count);
    buffer.tell(
      3,
      Array.from({ length: count }, (_, index) => toldAt(index + 1)),
    );
    let position = 0;
    let text = '';
    let passages = 0;
    while (position < count) {
      const passage = buffer.after(position, UNSCOPED);
      expect(passage.bytes.length).toBeLessThan(65 * 1024);
      passages += 1;
      position = passage.position;
      text += passage.bytes.toString();
    }
    expect(passages).toBeGreaterThan(2);
    expect(text.match(/^id: 3-\d+$/gm)).toEqual(Array.from({ length: count }, (_, index) => `id: 3-${index + 1}`));
  });
});

describe('EVENTS-REPLAY: what is kept', () => {
  it('the newest so many, however many there were', () => {
    const buffer = bufferOf(3, 10);
    expect([6, 7, 10, 11, -1].map((position) => buffer.reachesBackTo(position))).toEqual([
      false,
      true,
      true,
      false,
      false,
    ]);
    expect(buffer.untoldAfter(0, 100).map(({ position }) => position)).toEqual([8, 9, 10]);
  });

  it('what was looked at too late does not take the place of what came meanwhile', () => {
    const buffer = bufferOf(3, 3);
    for (let position = 4; position <= 5; position += 1) buffer.add(eventAt(position));
    buffer.tell(3, [toldAt(1), toldAt(2), toldAt(3)]);
    expect(buffer.after(2, UNSCOPED)).toMatchObject({ position: 3 });
    expect(buffer.untoldAfter(2, 100).map(({ position }) => position)).toEqual([4, 5]);
  });

  it('several that nobody can be told of are one resync, with the last id', () => {
    const buffer = bufferOf(10, 3);
    buffer.tell(3, [toldAt(1), toldAt(2), toldAt(3, { workspaceId: '', ownerId: null })]);
    const text = buffer.after(0, ada('one')).bytes.toString();
    expect(text.match(/^id: .*$/gm)).toEqual(['id: 3-2', 'id: 3-3']);
    expect(text.match(/^event: .*$/gm)).toEqual(['event: resync', 'event: turn.started']);
  });
});
