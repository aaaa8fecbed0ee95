import { Injectable } from '@nestjs/common';
import type { OnModuleDestroy } from '@nestjs/common';

/** Whether requests are admitted: from the end of start-up recovery to the beginning of the shutdown. */
@Injectable()
export class Readiness implements OnModuleDestroy {
  private reason: string | undefined = 'starting';

  /** Undefined when ready. */
  get notReadyBecause(): string | undefined {
    return this.reason;
  }

  /** Called once, after every module's `onApplicationBootstrap` has recovered what it had to. */
  admit(): void {
    this.reason = undefined;
  }

  onModuleDestroy(): void {
    this.reason = 'stopping';
  }
}
