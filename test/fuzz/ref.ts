export type RefKind =
  | 'workspace'
  | 'task'
  | 'session'
  | 'turn'
  | 'bundle'
  | 'cursor'
  | 'answers'
  | 'webhook'
  | 'mcp session'
  | 'new mcp session'
  | 'request id';

/**
 * - `own`: of the estate that the case is about, whoever calls.
 * - `other`: of an estate of somebody else's.
 * - `deleted`: of a task that has been deleted.
 * - `sibling`: of another estate of the same owner.
 */
export type Whose = 'own' | 'other' | 'deleted' | 'sibling';

/** What is put in for it when the case is sent: ids differ in every run, cases don't. */
export class Ref {
  constructor(
    readonly kind: RefKind,
    readonly whose: Whose = 'own',
    /** Of the `answers`: what they say, whatever the questions turn out to be. */
    readonly picks: readonly { readonly option: number; readonly text: string }[] = [],
  ) {}

  toString(): string {
    return `${this.whose} ${this.kind}`;
  }
}
