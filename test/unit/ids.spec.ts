import { describe, expect, it } from '@jest/globals';
import { NO_SUCH_ID, usableId } from '../../src/common/ids.js';

describe('usableId', () => {
  it('leaves an id that a row can have as it is', () => {
    expect(usableId('0190c9b7-7d1e-7a4b-8a57-1f0c4f3a2b1c')).toBe('0190c9b7-7d1e-7a4b-8a57-1f0c4f3a2b1c');
    expect(usableId('x'.repeat(128))).toBe('x'.repeat(128));
    // Only the product's own ids are plain; one that a foreign hand wrote is listed, so it must be found.
    expect(usableId('é ä\n😀')).toBe('é ä\n😀');
    expect(usableId('😀'.repeat(128))).toBe('😀'.repeat(128));
  });

  it.each(['', 'a\u0000', '\ud800', 'a\ufffd', 'x'.repeat(129), '😀'.repeat(129), 'x'.repeat(10_000)])(
    'A3: turns %j into an id that no row has',
    (id) => {
      expect(usableId(id)).toBe(NO_SUCH_ID);
    },
  );
});
