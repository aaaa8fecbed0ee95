import { assertNever } from '../../common/assert-never.js';
import type { AnswerEntry, BundleRow, Question } from './bundle.js';

/** A move of one row. The intent is `response_delivery_pending`: claimed, and not yet known to be handed over. */
export type BundleChange =
  | { readonly kind: 'answered'; readonly response: AnswerEntry }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'expired' }
  /** Back to pending, as if the claim had not been. */
  | { readonly kind: 'restored' }
  /** The intent is set again, after a hand-over that turned out to have reached nobody. */
  | { readonly kind: 'intent' }
  /** The intent is cleared. */
  | { readonly kind: 'settled' }
  | { readonly kind: 'detached' }
  | { readonly kind: 'attached' };

/** The fixed order in which a clarification's metadata is written; any other key follows as it was read. */
const KEY_ORDER = [
  'pending_id',
  'question_id',
  'question',
  'question_index',
  'question_total',
  'context',
  'status',
  'response',
  'agent_disconnected',
  'response_delivery_pending',
] as const;

type Key = (typeof KEY_ORDER)[number];
/** What a change sets; a key that is there and undefined is removed. */
type Patch = { readonly [K in Key]?: unknown };

/** The metadata of a question that has just been asked. */
export function newMetadata(asked: {
  readonly pendingId: string;
  readonly question: Question;
  readonly index: number;
  readonly total: number;
  readonly context: string;
}): string {
  const { id, title, prompt, options } = asked.question;
  return compose(
    {},
    {
      pending_id: asked.pendingId,
      question_id: id,
      question: {
        id,
        title,
        prompt,
        options: options.map(({ option_id, label, description }) => ({ option_id, label, description })),
      },
      question_index: asked.index,
      question_total: asked.total,
      context: asked.context,
      status: 'pending',
    },
  );
}

/** The row's document after the change, as JSON text. Everything the change does not name stays as it was read. */
export function composeMetadata(row: BundleRow, change: BundleChange): string {
  return compose(row.metadata, patchOf(change));
}

function patchOf(change: BundleChange): Patch {
  switch (change.kind) {
    case 'answered': {
      const { question_id, selected_options, custom_text } = change.response;
      const response = { question_id, selected_options, custom_text };
      return { status: 'answered', response, response_delivery_pending: true };
    }
    case 'rejected':
      return { status: 'rejected', response: undefined, response_delivery_pending: true };
    case 'cancelled':
    case 'expired':
      return { status: change.kind };
    case 'restored':
      return { status: 'pending', response: undefined, response_delivery_pending: undefined };
    case 'intent':
      return { response_delivery_pending: true };
    case 'settled':
      return { response_delivery_pending: undefined };
    case 'detached':
      return { agent_disconnected: true };
    case 'attached':
      return { agent_disconnected: undefined };
    default:
      return assertNever(change);
  }
}

/** Written member by member: an object would put number-like keys first and swallow `__proto__`. */
function compose(document: Readonly<Record<string, unknown>>, patch: Patch): string {
  const members: string[] = [];
  const write = (key: string, value: unknown): void => {
    if (value !== undefined) members.push(`${JSON.stringify(key)}:${JSON.stringify(value)}`);
  };
  for (const key of KEY_ORDER) write(key, key in patch ? patch[key] : document[key]);
  const known: ReadonlySet<string> = new Set(KEY_ORDER);
  for (const [key, value] of Object.entries(document)) {
    if (!known.has(key)) write(key, value);
  }
  return `{${members.join(',')}}`;
}
