/** A step that did not go as the product promises; the demo ends with it. */
export class StepFailed extends Error {}

/** Prints what happens, for a person to read. */
export class Transcript {
  private step = 0;

  heading(text: string): void {
    this.step += 1;
    console.log(`\n${this.step}. ${text}`);
  }

  says(who: string, text: string): void {
    const [first = '', ...more] = text.split('\n');
    console.log(`   ${who.padEnd(8)} ${first}`);
    for (const line of more) console.log(`   ${''.padEnd(8)} ${line}`.trimEnd());
  }

  /** States what was checked; the demo fails when it is not so. */
  check(isSo: boolean, text: string): void {
    console.log(`   ${isSo ? 'ok' : 'NOT SO'}: ${text}`);
    if (!isSo) throw new StepFailed(text);
  }
}
