import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import type { Deadline } from '../common/deadline.js';
import { NotActiveError } from '../common/domain-error.js';
import type { Caller } from '../identity/caller.js';
import { CommitOutcomeUnknownError, Reader, UnitOfWork } from '../persistence/unit-of-work.js';
import { refuseAgents } from '../tasks/authorization/task-access.js';
import { BundleAccess, type AuthorisedBundle } from './bundle-access.js';
import type { AnsweredBy, Surface } from './answered-by.js';
import { OutcomeDelivery } from './delivery/outcome-delivery.js';
import { winnerResponse, type Response } from './domain/bundle.js';
import { normaliseOutcome } from './domain/normalise-outcome.js';
import { validateOutcome, type Outcome } from './domain/validate-outcome.js';
import { findBundle } from './persistence/bundles.repository.js';
import { claimBundle, findCommittedClaim, type Claim } from './persistence/claim-bundle.tx.js';
import { ResponsePhases } from './response-phases.js';

export interface Resolution {
  /** Whether this caller's outcome is the one that counts. */
  readonly claimed: boolean;
  /** False while the hand-over is not settled: it may yet be rolled back, so keep the draft and ask again. */
  readonly delivered: boolean;
  readonly status: 'answered' | 'rejected';
  readonly response: Response;
}

const UNAVAILABLE = 'clarification response is temporarily unavailable';

/**
 * The only way to resolve a bundle, for every surface: identify and authorise, validate and normalise, claim, and for
 * the winner alone deliver. Steps before the claim never ask whether the bundle is active (P2), and nothing in memory
 * decides anything (R6).
 */
@Injectable()
export class ClarificationResolver {
  constructor(
    private readonly access: BundleAccess,
    private readonly unitOfWork: UnitOfWork,
    private readonly reader: Reader,
    private readonly clock: Clock,
    private readonly delivery: OutcomeDelivery,
    private readonly phases: ResponsePhases,
  ) {}

  /**
   * @param outcome what the caller sent, unchecked
   * @param how.deadline the pre-claim budget; delivery has one of its own
   * @param how.authorised the bundle, when a guard has already authorised this caller for it
   * @throws ForbiddenError for agents, NotFoundError, ValidationError, NotActiveError, TemporarilyUnavailableError (nothing
   * was claimed), InternalError with `retryable` when the hand-over failed
   */
  async resolveBundle(
    caller: Caller,
    pendingId: string,
    outcome: unknown,
    how: { readonly surface: Surface; readonly deadline: Deadline; readonly authorised?: AuthorisedBundle },
  ): Promise<Resolution> {
    refuseAgents(caller);
    const by: AnsweredBy = { caller, surface: how.surface };
    const deadline = how.deadline.withMessage(UNAVAILABLE);
    const { bundle, decided } = await this.phases.run('identity', pendingId, by, async () => {
      const authorised = how.authorised ?? (await this.access.authorise(caller, pendingId, deadline));
      const valid = validateOutcome(outcome, authorised.rows);
      return { bundle: authorised, decided: normaliseOutcome(valid, authorised.rows) };
    });
    return this.delivery.own(bundle.pendingId, () => this.claimAndDeliver(bundle, decided, by, deadline));
  }

  private async claimAndDeliver(
    bundle: AuthorisedBundle,
    decided: Outcome,
    by: AnsweredBy,
    deadline: Deadline,
  ): Promise<Resolution> {
    const claim = await this.phases.run(
      'claim',
      bundle.pendingId,
      by,
      () => this.claim(bundle, decided, deadline),
      (result) => (result.kind === 'claimed' ? 'ok' : 'lost'),
    );
    if (claim.kind === 'lost') return this.tellLoser(bundle.pendingId, deadline);
    const claimed = claim.bundle;
    await this.phases.run('delivery', claimed.pendingId, by, () => this.delivery.deliver(claimed, by));
    return { claimed: true, delivered: true, status: claimed.status, response: claimed.response };
  }

  private async claim(bundle: AuthorisedBundle, outcome: Outcome, deadline: Deadline): Promise<Claim> {
    const now = this.clock.now();
    try {
      return await this.unitOfWork.run('bundle.claim', deadline, (tx) =>
        claimBundle(tx, bundle.pendingId, bundle.rows, outcome, now),
      );
    } catch (error) {
      if (!(error instanceof CommitOutcomeUnknownError)) throw error;
      // R4a: the rows alone know. Without the claim in them it did not happen, and sending it again is safe.
      const committed = await findCommittedClaim(
        this.reader.within(deadline),
        bundle.pendingId,
        bundle.rows,
        outcome,
        now,
      );
      if (committed === undefined) throw deadline.expiry(error);
      return { kind: 'claimed', bundle: committed };
    }
  }

  /** R2: one look at the rows, no retry. */
  private async tellLoser(pendingId: string, deadline: Deadline): Promise<Resolution> {
    const rows = await findBundle(this.reader.within(deadline), pendingId);
    const winner = winnerResponse(rows, pendingId);
    if (winner === undefined) throw new NotActiveError('clarification request is no longer active');
    return { claimed: false, delivered: !rows.some((row) => row.deliveryPending), ...winner };
  }
}
