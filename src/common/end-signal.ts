/**
 * What waiting needs of an AbortSignal, which is one too. Thousands of calls wait at once, and a signal of the platform
 * takes a kilobyte as soon as somebody listens.
 */
export interface EndSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/** An {@link EndSignal} that its owner ends. Listeners hear of it once, in the order in which they came. */
export class End implements EndSignal {
  private isOver = false;
  private listeners: (() => void)[] | undefined;

  get aborted(): boolean {
    return this.isOver;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.isOver) (this.listeners ??= []).push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const index = this.listeners?.indexOf(listener) ?? -1;
    if (index >= 0) this.listeners?.splice(index, 1);
  }

  /** The first call counts. */
  abort(): void {
    if (this.isOver) return;
    this.isOver = true;
    // One at a time off the list, because one may stop another.
    for (let next = this.listeners?.shift(); next !== undefined; next = this.listeners?.shift()) next();
  }
}
