import { Injectable } from '@nestjs/common';
import type { Instant } from '../common/clock.js';
import { CallerGoneError, Deadline } from '../common/deadline.js';
import { DomainError, InternalError } from '../common/domain-error.js';
import { Env } from '../config/env.js';
import type { Caller } from '../identity/caller.js';
import { CommitOutcomeUnknownError, Reader, UnitOfWork } from '../persistence/unit-of-work.js';
import { whileAway } from '../persistence/while-away.js';
import { refuseAgents } from '../tasks/authorization/task-access.js';
import { BundleAccess, type AuthorisedBundle } from './bundle-access.js';
import type { AnsweredBy, Surface } from './answered-by.js';
import { OutcomeDelivery } from './delivery/outcome-delivery.js';
import { bundleNotActive, bundleNotFound } from './domain/bundle-errors.js';
import { winnerResponse, type Response } from './domain/bundle.js';
import { normaliseOutcome } from './domain/normalise-outcome.js';
import { validateOutcome, type Outcome } from './domain/validate-outcome.js';
import { findBundleStanding } from './persistence/bundles.repository.js';
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

/** R10, wherever the budget before the claim runs out. */
export const UNAVAILABLE = 'clarification response is temporarily unavailable';

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
    private readonly delivery: OutcomeDelivery,
    private readonly phases: ResponsePhases,
    private readonly env: Env,
  ) {}

  /**
   * @param outcome what the caller sent, unchecked
   * @param how.deadline the pre-claim budget; delivery has one of its own
   * @param how.authorised the bundle, when a guard has already authorised this caller for it
   * @throws ForbiddenError for agents, NotFoundError, ValidationError, NotActiveError, TemporarilyUnavailableError (nothing
   * was claimed), InternalError with `retryable` when the claim or the hand-over failed
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
    const { bundle, decided } = await this.phases.identity(pendingId, by, deadline.startedAt, async () => {
      const authorised = how.authorised ?? (await this.access.authorise(caller, pendingId, deadline));
      const valid = validateOutcome(outcome, authorised.rows);
      return { bundle: authorised, decided: normaliseOutcome(valid, authorised.rows) };
    });
    return this.delivery.own(bundle.pendingId, (now) => this.claimAndDeliver(bundle, decided, by, now, deadline));
  }

  private async claimAndDeliver(
    bundle: AuthorisedBundle,
    decided: Outcome,
    by: AnsweredBy,
    now: Instant,
    deadline: Deadline,
  ): Promise<Resolution> {
    const claim = await this.phases.claim(bundle.pendingId, by, async () => {
      const result = await this.claim(bundle, decided, now, deadline);
      if (result.kind === 'claimed') return result;
      return { kind: 'lost', resolution: await this.tellLoser(bundle.pendingId, deadline) } as const;
    });
    if (claim.kind === 'lost') return claim.resolution;
    const claimed = claim.bundle;
    const delivered = await this.phases.delivery(claimed, by, () => this.delivery.deliver(claimed, by));
    return { claimed: true, delivered, status: claimed.status, response: claimed.response };
  }

  private async claim(bundle: AuthorisedBundle, outcome: Outcome, now: Instant, deadline: Deadline): Promise<Claim> {
    try {
      return await this.unitOfWork.run('bundle.claim', deadline, (tx) =>
        claimBundle(tx, bundle.pendingId, bundle.rows, outcome, now),
      );
    } catch (error) {
      if (error instanceof CommitOutcomeUnknownError) return this.claimWithoutReply(bundle, outcome, now, error);
      if (error instanceof DomainError || error instanceof CallerGoneError) throw error;
      throw new InternalError('the answer could not be recorded; nothing was changed', {
        cause: error,
        retryable: true,
      });
    }
  }

  /**
   * R4a: COMMIT got no reply, and the rows alone know. Within a budget of its own: the caller's is spent on a claim that
   * may be durable by now, and whether it still listens makes no difference to one that is.
   */
  private async claimWithoutReply(
    bundle: AuthorisedBundle,
    outcome: Outcome,
    now: Instant,
    cause: CommitOutcomeUnknownError,
  ): Promise<Claim> {
    const budget = Deadline.after(this.env.preClaimBudgetMs, { message: UNAVAILABLE });
    const committed = await whileAway(budget, () =>
      this.unitOfWork.run('bundle.claim-outcome', budget, (tx) => findCommittedClaim(tx, bundle, outcome, now)),
    );
    if (committed !== undefined) return { kind: 'claimed', bundle: committed };
    // It did not happen, or the reconciliation will undo it: sending it again is safe either way.
    throw budget.expiry(cause);
  }

  /** R2: one look at the rows, no retry. */
  private async tellLoser(pendingId: string, deadline: Deadline): Promise<Resolution> {
    const { rows, isActive, isDelivered } = await findBundleStanding(this.reader.within(deadline), pendingId);
    if (rows.length === 0) throw bundleNotFound();
    // Whoever won has been rolled back meanwhile: it is neither resolved nor too late.
    if (isActive) throw deadline.expiry();
    const winner = winnerResponse(rows, pendingId);
    if (winner === undefined) throw bundleNotActive();
    return { claimed: false, delivered: isDelivered, ...winner };
  }
}
