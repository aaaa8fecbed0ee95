/** A mistake that somebody could make in the product, and the test that has to notice it. */
export interface Patch {
  /** The id in `test/requirements.ts` of the promise that the mistake breaks. */
  readonly rule: string;
  /** The mistake, in a sentence. */
  readonly says: string;
  /** The file of the product that it is in. */
  readonly file: string;
  /** What stands there exactly once. */
  readonly find: string;
  readonly replace: string;
  /** The spec that is the rule's main proof. Of its tests only those that cite the rule count. */
  readonly spec: string;
  /** Part of the title of the test that must go red, where others would cite the rule too. */
  readonly title?: string;
  /** The database on which it shows. Default: tests on PostgreSQL are left out. */
  readonly on?: 'postgres';
}

/** The ids of chapter 3, which are a letter with a number: each of them must have a patch. */
export function isLettered(rule: string): boolean {
  return /^[A-Z]\d*[a-z]?$/.test(rule);
}
