import { rm } from 'node:fs/promises';
import { onSignal } from '../../test/support/on-signal.js';
import { killAll } from './children.js';
import type { PostgresServer } from './postgres-server.js';

/** What a run has started and written, and what becomes of it: whatever happens, no process and no folder is left. */
export class Leftovers {
  folder: string | undefined;
  postgres: PostgresServer | undefined;
  private cleaned: Promise<void> | undefined;

  constructor() {
    onSignal(() => this.cleanUp());
  }

  /** A signal ends what is under way by force: then what fails is no failure of its own. */
  get isCleaning(): boolean {
    return this.cleaned !== undefined;
  }

  cleanUp(): Promise<void> {
    this.cleaned ??= this.remove();
    return this.cleaned;
  }

  private async remove(): Promise<void> {
    await killAll();
    await this.postgres?.stop();
    if (this.folder !== undefined) await rm(this.folder, { recursive: true, force: true });
  }
}
