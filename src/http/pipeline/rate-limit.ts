import { TooManyRequestsError, UnauthorizedError } from '../../common/domain-error.js';
import { hashToken, presentedToken } from '../../identity/tokens.js';
import { clientNetwork } from '../client-network.js';
import type { LimitMetrics } from '../limit-metrics.js';
import { MinuteBudget } from './minute-budget.js';
import type { Step } from './step.js';

export interface RequestRates {
  /** Requests a minute of one token; of one address, those without a token that is known to be good. 0 = no limit. */
  readonly perMinute: number;
  /** Requests a minute with good tokens of one address, whosever they are. 0 = no limit. */
  readonly perAddress: number;
}

const STRANGERS = 'without a valid token from this address';

/** Some 200 bytes each. */
const TOKENS = 10_000;
const ADDRESSES = 20_000;

/**
 * Who may ask how often, decided around the authentication, so that guessing is stopped before it costs a look-up:
 *
 * - each **token** has a budget of its own, an agent's like a user's;
 * - what comes from an **address** without a token that has been good before (none, bad ones, new ones until they are
 *   found to be good) shares a budget, which is spent before the token is looked up;
 * - the good tokens of an **address** together share another, so that having many of them is no way around it.
 *
 * A token that has been good keeps its way in while others at its address are guessing. A new one must find room in what
 * they leave, and is told when the next minute begins.
 */
export class RateLimit {
  /** By the hash of the token: what is in here has been good. */
  private readonly tokens: MinuteBudget;
  private readonly strangers: MinuteBudget;
  private readonly addresses: MinuteBudget;

  constructor(
    rates: RequestRates,
    private readonly metrics: Pick<LimitMetrics, 'refused'>,
  ) {
    this.tokens = new MinuteBudget(rates.perMinute, TOKENS);
    this.strangers = new MinuteBudget(rates.perMinute, ADDRESSES);
    this.addresses = new MinuteBudget(rates.perAddress, ADDRESSES);
  }

  /** The authentication with the limits around it. Health is not limited: a supervisor must always get its answer. */
  around(authenticate: Step): Step {
    if (this.tokens.limit === 0 && this.addresses.limit === 0) return authenticate;
    return async (request, response) => {
      if (request.path.startsWith('/health/')) return authenticate(request, response);
      const network = clientNetwork(request);
      const token = presentedToken(request.headers.authorization);
      const hash = token === undefined ? undefined : hashToken(token);
      const isKnown = hash !== undefined && this.tokens.has(hash);
      if (isKnown) await this.spendGood(hash, network);
      else await this.spend(this.strangers, network, STRANGERS);
      try {
        await authenticate(request, response);
      } catch (error) {
        if (isKnown && error instanceof UnauthorizedError) await this.tokens.forget(hash);
        throw error;
      }
      if (isKnown || hash === undefined || request.caller === undefined) return;
      await this.strangers.giveBack(network);
      await this.spendGood(hash, network);
    };
  }

  /**
   * The further messages of a batch, which MCP lets one request carry, count as if each had come by itself. After the body
   * has been read.
   */
  readonly batch: Step = async (request) => {
    const body: unknown = request.body;
    if (!Array.isArray(body) || request.path.startsWith('/health/')) return;
    const network = clientNetwork(request);
    const token = presentedToken(request.headers.authorization);
    const isGood = request.caller !== undefined && token !== undefined;
    for (let further = 1; further < body.length; further += 1) {
      await (isGood ? this.spendGood(hashToken(token), network) : this.spend(this.strangers, network, STRANGERS));
    }
  };

  /** Ends the timers of the stores. */
  close(): void {
    for (const budget of [this.tokens, this.strangers, this.addresses]) budget.close();
  }

  private async spendGood(hash: string, network: string): Promise<void> {
    await this.spend(this.tokens, hash, 'with this token');
    await this.spend(this.addresses, network, 'from this address');
  }

  /** @throws TooManyRequestsError */
  private async spend(budget: MinuteBudget, key: string, whose: string): Promise<void> {
    const seconds = await budget.take(key);
    if (seconds === undefined) return;
    this.metrics.refused(budget === this.tokens ? 'token' : budget === this.addresses ? 'address' : 'stranger');
    throw new TooManyRequestsError(`more than ${budget.limit} requests in a minute ${whose}`, seconds);
  }
}
