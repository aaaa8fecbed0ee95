import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Clarifications } from '../tasks/clarification.port.js';
import { holdsBackPrompts, sessionsWithActiveBundle } from './persistence/active-sessions.query.js';
import { detachBundles, expireBundles } from './persistence/close-bundles.tx.js';
import { noteSuperseded } from './persistence/note-superseded.tx.js';

/** Hands the tasks feature its view of open questions. */
@Injectable()
export class ClarificationPortAdapter implements OnModuleInit {
  constructor(private readonly clarifications: Clarifications) {}

  onModuleInit(): void {
    this.clarifications.provide({
      holdsBackPrompts,
      sessionsWithActiveBundle,
      noteSuperseded,
      expireActive: expireBundles,
      detachActive: (tx, sessionId, now) => detachBundles(tx, sessionId, undefined, now),
    });
  }
}
