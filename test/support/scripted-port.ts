import type { Deadline } from '../../src/common/deadline.js';
import { ResumePort, type AgentCall, type CallResult } from '../../src/tasks/resume/resume.port.js';

export const ACCEPTED: CallResult = { kind: 'accepted' };
export const NOT_DELIVERED: CallResult = { kind: 'not-delivered', reason: 'status 500' };
export const UNKNOWN: CallResult = { kind: 'unknown', reason: 'ECONNRESET' };

/** What an agent's webhook does with one call; default: accepts. */
export type Script = (call: AgentCall, abort: AbortSignal | undefined) => CallResult | Promise<CallResult>;

/** Calls nobody: records what would have been sent, and comes to what the test says. */
export class ScriptedPort extends ResumePort {
  readonly calls: AgentCall[] = [];
  private readonly scripts: Script[] = [];

  /** For the next calls in turn. */
  next(...scripts: (Script | CallResult)[]): void {
    this.scripts.push(...scripts.map((script) => (typeof script === 'function' ? script : () => script)));
  }

  /** The next call waits until the test lets it end. */
  holdNext(): { readonly called: Promise<AgentCall>; readonly end: (result: CallResult) => void } {
    let arrived: (call: AgentCall) => void = () => undefined;
    let end: (result: CallResult) => void = () => undefined;
    const called = new Promise<AgentCall>((resolve) => (arrived = resolve));
    const result = new Promise<CallResult>((resolve) => (end = resolve));
    this.next((call, abort) => {
      arrived(call);
      const aborted = new Promise<CallResult>((resolve) => {
        abort?.addEventListener('abort', () => resolve({ kind: 'unknown', reason: 'aborted' }), { once: true });
      });
      return Promise.race([result, aborted]);
    });
    return { called, end };
  }

  override async call(call: AgentCall, _deadline: Deadline, abort?: AbortSignal): Promise<CallResult> {
    this.calls.push(call);
    return (this.scripts.shift() ?? (() => ACCEPTED))(call, abort);
  }
}
