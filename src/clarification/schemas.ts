import { Type } from 'typebox';

const closed = { additionalProperties: false } as const;
const Instant = Type.String({ format: 'date-time', description: 'UTC, with milliseconds' });
const Resolved = Type.Enum(['answered', 'rejected']);

const AnswerEntryView = Type.Object(
  {
    question_id: Type.String(),
    selected_options: Type.Array(Type.String(), { description: 'Option ids' }),
    custom_text: Type.String(),
  },
  closed,
);

/** R12: every field always there. */
export const ResponseView = Type.Object(
  {
    pending_id: Type.String(),
    answers: Type.Array(AnswerEntryView, { description: 'Empty when declined' }),
    rejected: Type.Boolean(),
    reject_reason: Type.String({ description: 'Not stored with the question: empty when told again' }),
    responded_at: Instant,
  },
  closed,
);

export const WaitResponseView = Type.Object(
  {
    ...ResponseView.properties,
    turn_id: Type.Optional(Type.String({ description: 'The turn in which the agent is given this answer already' })),
  },
  closed,
);

/** R10: the same for the winner and everybody after it. */
export const ResolutionView = Type.Object(
  {
    success: Type.Literal(true),
    claimed: Type.Boolean({ description: 'Whether it is this answer that counts' }),
    delivered: Type.Boolean({ description: 'False while the hand-over to the agent is not settled' }),
    status: Resolved,
    response: ResponseView,
  },
  closed,
);

const OptionView = Type.Object({ option_id: Type.String(), label: Type.String(), description: Type.String() }, closed);

const QuestionView = Type.Object(
  {
    question_id: Type.String(),
    title: Type.String(),
    prompt: Type.String(),
    status: Type.String({ description: '`pending`, or what has become of this question already' }),
    options: Type.Array(OptionView),
  },
  closed,
);

const BundleView = Type.Object(
  {
    pending_id: Type.String({ description: 'Names the bundle' }),
    task_id: Type.String(),
    session_id: Type.String(),
    created_at: Instant,
    age_seconds: Type.Integer({ minimum: 0 }),
    context: Type.String(),
    questions: Type.Array(QuestionView),
  },
  closed,
);

export const BundlePageView = Type.Object(
  {
    bundles: Type.Array(BundleView),
    count: Type.Integer({ minimum: 0, description: 'How many bundles are on this page' }),
    next_cursor: Type.String({ description: 'Give it as cursor to get the next page; empty at the end' }),
  },
  closed,
);

export const BundleDetailView = Type.Object(
  {
    pending_id: Type.String(),
    session_id: Type.String(),
    task_id: Type.String(),
    context: Type.String(),
    created_at: Instant,
    status: Type.String({ description: '`pending` while any question is; otherwise how it ended' }),
    active: Type.Boolean({ description: 'Whether it can be answered now' }),
    delivered: Type.Boolean({ description: 'Whether the answer has been handed over' }),
    questions: Type.Array(QuestionView),
    response: Type.Optional(ResponseView),
  },
  closed,
);

export const CreatedBundleView = Type.Object({ pending_id: Type.String() }, closed);
export const CancelledView = Type.Object({ success: Type.Literal(true) }, closed);
