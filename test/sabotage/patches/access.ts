import type { Patch } from '../patch.js';

const access = 'src/clarification/bundle-access.ts';
const responding = 'test/http/respond.spec.ts';
const notFound = 'test/http/not-found.spec.ts';
const matrix = 'test/http/matrix.spec.ts';

/** Who may do what, and what everybody else is told. */
export const ACCESS: readonly Patch[] = [
  {
    rule: 'A1',
    says: 'Whoever knows the id of a bundle may answer it.',
    file: access,
    find: "return this.tasks.authorizeTaskAccess(caller, bundleTaskId(rows) ?? '', deadline);",
    replace: 'return rows.length > 0;',
    spec: notFound,
    title: '/respond: whatever',
  },
  {
    rule: 'A2',
    says: 'An agent reaches every bundle, not only those of its session.',
    file: access,
    find: 'return rows.every((row) => row.sessionId === caller.sessionId);',
    replace: 'return rows.length > 0;',
    spec: notFound,
    title: '/cancel: whatever',
  },
  {
    rule: 'A3',
    says: 'A bundle that the caller may not see is told in other words than one that is not there.',
    file: access,
    find: 'if (!isAllowed || first === undefined) throw',
    replace:
      "if (first !== undefined && !isAllowed) throw new NotFoundError('this clarification request is not yours');\n    if (first === undefined) throw",
    spec: notFound,
  },
  {
    rule: 'A3',
    says: 'An id goes to the database as it came.',
    file: 'src/common/ids.ts',
    find: 'return USABLE.test(id) ? id : NO_SUCH_ID;',
    replace: 'return id;',
    spec: notFound,
    on: 'postgres',
  },
  {
    rule: 'A4',
    says: 'A bundle without a task is not found for an unscoped caller either.',
    file: access,
    find: "case 'unscoped':\n        return true;",
    replace: "case 'unscoped':\n        return bundleTaskId(rows) !== undefined;",
    spec: responding,
  },
  {
    rule: 'A5',
    says: 'Who may not see a bundle is told that it is forbidden.',
    file: access,
    find: 'if (!isAllowed || first === undefined) throw',
    replace:
      "if (first !== undefined && !isAllowed) throw Object.assign(bundleNotFound(), { code: 'forbidden' });\n    if (first === undefined) throw",
    spec: notFound,
  },
  {
    rule: 'A8',
    says: 'A task_id sent along with an answer is an unknown field.',
    file: 'src/clarification/domain/outcome-input.ts',
    find: "return validateInput(OutcomeInput, withoutTaskId(raw), 'outcome');",
    replace: "return validateInput(OutcomeInput, raw, 'outcome');",
    spec: responding,
  },
  {
    rule: 'N5',
    says: 'Over MCP each not-found is told by its own request.',
    file: 'src/mcp/mcp-error.ts',
    find: 'not_found: asItIs,',
    replace: 'not_found: (error, requestId) => `${error.message} (${requestId})`,',
    spec: notFound,
  },
  {
    rule: 'ACCESS',
    says: 'The tasks of a workspace are everybody’s, whoever owns it.',
    file: 'src/tasks/persistence/visible-tasks.predicate.ts',
    find: "vw.owner_id NOT IN ('', $${next})",
    replace: "vw.owner_id = '' AND $${next} <> ''",
    spec: matrix,
  },
  {
    rule: 'AGENT',
    says: 'An agent may answer the questions of its own session.',
    file: 'src/clarification/http/clarification.controller.ts',
    find: 'access: { ...ofBundle, agents: false },',
    replace: 'access: ofBundle,',
    spec: matrix,
  },
  {
    rule: 'A3',
    says: 'Nobody is asked about a bundle that is not there, which is quicker than asking about a foreign one.',
    file: 'src/clarification/bundle-access.ts',
    find: "return this.tasks.authorizeTaskAccess(caller, bundleTaskId(rows) ?? '', deadline);",
    replace: "return rows.length > 0 && this.tasks.authorizeTaskAccess(caller, bundleTaskId(rows) ?? '', deadline);",
    spec: 'test/http/not-found-statements.spec.ts',
  },
  {
    rule: 'A3',
    says: 'REST tells what cannot be reached as soon as it knows.',
    file: 'src/http/problem-writer.ts',
    find: 'if (error instanceof NotFoundError) setTimeout(answer, untilEvenStep(request.deadline.startedAt));',
    replace: 'if (error instanceof NotFoundError) setTimeout(answer, untilEvenStep(request.deadline.startedAt) * 0);',
    spec: 'test/http/not-found-statements.spec.ts',
  },
];
