import { BenchError } from './bench-error.js';

export type Value = string | number | null;

/** One statement as it was given to the driver. */
export interface Statement {
  /** `writer`: a connection on which transactions are made. */
  readonly role: 'writer' | 'reader';
  /** The driver's method. */
  readonly method: string;
  readonly text: string;
  readonly values: readonly Value[] | null;
  /** PostgreSQL: the prepared statement's name. SQLite: `prepared` when it was. Else empty. */
  readonly name: string;
  /** The earlier ones that had not ended when it was sent. */
  readonly overlaps: readonly number[];
  /** How many rows it gave or changed. */
  readonly rows: number;
}

/** What one request made the product send. */
export interface Recording {
  readonly statements: readonly Statement[];
  /** Every text that names the bundle of this request, in an order that all recordings have. */
  readonly ids: readonly string[];
  /** Between these two instants (milliseconds) the request was made. */
  readonly from: number;
  readonly to: number;
}

/** A value to be written for another bundle: literal text between what is to be filled in. */
export type Part = string | { readonly id: number } | { readonly fresh: number } | { readonly now: true };
export type Template = readonly Part[] | number | null;

export interface PlannedStatement extends Omit<Statement, 'values'> {
  readonly values: readonly Template[] | null;
}

/** The same request once more, for any bundle. */
export interface Plan {
  readonly statements: readonly PlannedStatement[];
}

// Its limits are what is left of a budget: they differ from one time to the next.
const OPENING = /^\s*(BEGIN|SET)\b/i;

/** A statement's text without what may differ from one request to the next. */
export function comparableText({ text, values }: Pick<Statement, 'text'> & { readonly values: unknown }): string {
  return values === null || (Array.isArray(values) && values.length === 0 && OPENING.test(text))
    ? text.replaceAll(/\b\d+\b/g, 'N')
    : text;
}

/**
 * The first difference between what two servers sent: text, order, connection, method, being prepared, rows.
 * @returns undefined when there is none
 */
export function differenceBetween(
  expected: readonly Omit<Statement, 'values' | 'overlaps'>[],
  sent: readonly Omit<Statement, 'values' | 'overlaps'>[],
): string | undefined {
  const lines = (statements: typeof expected): string[] =>
    statements.map(
      (statement) =>
        `[${statement.role}, ${statement.method}${statement.name === '' ? '' : `, ${statement.name}`}, ${statement.rows} rows] ${comparableText({ values: null, ...statement })}`,
    );
  const [ofExpected, ofSent] = [lines(expected), lines(sent)];
  for (let index = 0; index < Math.max(ofExpected.length, ofSent.length); index += 1) {
    const [wanted, got] = [ofExpected[index] ?? 'nothing', ofSent[index] ?? 'nothing'];
    if (wanted !== got) return `statement ${index + 1} is\n  ${got}\ninstead of\n  ${wanted}`;
  }
  return undefined;
}

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const SLACK_MS = 1000;

/**
 * What two recordings of the same request for two bundles have in common, with the rest to be filled in: the bundle's
 * ids, the time, and ids that were new.
 *
 * @throws BenchError when they differ in anything else
 */
export function planOf(first: Recording, second: Recording): Plan {
  const difference = differenceBetween(first.statements, second.statements);
  if (difference !== undefined) throw new BenchError(`the product does not send the same twice: ${difference}`);
  const newIds = newIdsOf(first, second);
  const statements = first.statements.map((statement, index) => {
    const other = second.statements[index]?.values ?? null;
    const values =
      statement.values?.map((value, place) => {
        const template = templateOf(value, first, newIds.first);
        const again = templateOf(other?.[place] ?? null, second, newIds.second);
        if (!sameTemplate(template, again)) {
          throw new BenchError(`cannot rebuild value ${place + 1} of "${statement.text}"`);
        }
        return template;
      }) ?? null;
    return { ...statement, values };
  });
  return { statements };
}

/** UUIDs that are in the values of one recording only, by where they stand first. */
function newIdsOf(first: Recording, second: Recording): { first: readonly string[]; second: readonly string[] } {
  const [inFirst, inSecond] = [uuidsOf(first), uuidsOf(second)];
  return {
    first: inFirst.filter((id) => !inSecond.includes(id) && !first.ids.includes(id)),
    second: inSecond.filter((id) => !inFirst.includes(id) && !second.ids.includes(id)),
  };
}

function uuidsOf({ statements }: Recording): readonly string[] {
  const all = statements.flatMap(({ values }) => values ?? []).flatMap((value) => String(value).match(UUID) ?? []);
  return [...new Set(all)];
}

function templateOf(value: Value, recording: Recording, newIds: readonly string[]): Template {
  if (typeof value !== 'string') return value;
  const places: { readonly at: number; readonly length: number; readonly part: Part }[] = [];
  const find = (text: string, part: Part): void => {
    for (let at = value.indexOf(text); at >= 0; at = value.indexOf(text, at + text.length)) {
      places.push({ at, length: text.length, part });
    }
  };
  recording.ids.forEach((id, index) => find(id, { id: index }));
  newIds.forEach((id, index) => find(id, { fresh: index }));
  for (const { 0: instant, index } of value.matchAll(INSTANT)) {
    const time = Date.parse(instant);
    const isOfNow = time >= recording.from - SLACK_MS && time <= recording.to + SLACK_MS;
    if (isOfNow) places.push({ at: index, length: instant.length, part: { now: true } });
  }
  const parts: Part[] = [];
  let from = 0;
  for (const { at, length, part } of places.sort((a, b) => a.at - b.at)) {
    if (at > from) parts.push(value.slice(from, at));
    parts.push(part);
    from = at + length;
  }
  if (from < value.length || parts.length === 0) parts.push(value.slice(from));
  return parts;
}

/** Apart from numbers, which are counts of milliseconds that are left. */
function sameTemplate(a: Template, b: Template): boolean {
  if (typeof a === 'number' && typeof b === 'number') return true;
  const isNumber = (template: Template): boolean =>
    Array.isArray(template) && template.length === 1 && /^\d+$/.test(String(template[0]));
  return (isNumber(a) && isNumber(b)) || JSON.stringify(a) === JSON.stringify(b);
}

/** The values of one statement for another bundle. @param freshIds as many as the plan names, the same in all of it */
export function fillIn(
  templates: readonly Template[],
  ids: readonly string[],
  freshIds: (index: number) => string,
  now: string,
): Value[] {
  return templates.map((template) => {
    if (template === null || typeof template === 'number') return template;
    return template
      .map((part) => {
        if (typeof part === 'string') return part;
        if ('id' in part) return ids[part.id] ?? '';
        return 'fresh' in part ? freshIds(part.fresh) : now;
      })
      .join('');
  });
}
