import { describe, expect, it } from '@jest/globals';
import { End } from '../../src/common/end-signal.js';

describe('End', () => {
  it('tells its listeners once, in their order', () => {
    const end = new End();
    const heard: string[] = [];
    end.addEventListener('abort', () => heard.push('first'));
    end.addEventListener('abort', () => heard.push('second'));
    expect(end.aborted).toBe(false);
    end.abort();
    end.abort();
    expect(end.aborted).toBe(true);
    expect(heard).toEqual(['first', 'second']);
  });

  it('tells nobody who has stopped listening, or begins after the end', () => {
    const end = new End();
    const heard: string[] = [];
    const left = (): void => void heard.push('left');
    end.addEventListener('abort', left);
    end.addEventListener('abort', () => heard.push('stayed'));
    end.removeEventListener('abort', left);
    end.removeEventListener('abort', left);
    end.abort();
    end.addEventListener('abort', () => heard.push('late'));
    expect(heard).toEqual(['stayed']);
  });

  it('is over for a listener that looks, and a listener may stop another', () => {
    const end = new End();
    const heard: unknown[] = [];
    const other = (): void => void heard.push('other');
    end.addEventListener('abort', () => {
      heard.push(end.aborted);
      end.removeEventListener('abort', other);
    });
    end.addEventListener('abort', other);
    end.abort();
    // As with an AbortSignal, whose removed listeners are not told any more.
    expect(heard).toEqual([true]);
  });
});
