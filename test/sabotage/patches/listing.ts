import type { Patch } from '../patch.js';

const listing = 'test/listing/listing.spec.ts';
const oddRows = 'test/listing/odd-rows.spec.ts';
const query = 'src/clarification/persistence/list-active-bundles.query.ts';
const predicate = 'src/clarification/persistence/active-bundle.predicate.ts';
const visible = 'src/tasks/persistence/visible-tasks.predicate.ts';
const anyWorld = 'test/listing/any-world.spec.ts';
const activeness = 'test/listing/activeness.spec.ts';

/** Which bundles are active, and the pages of them that a caller sees. */
export const LISTING: readonly Patch[] = [
  {
    rule: 'D4',
    says: 'A session that has ended may still have active bundles.',
    file: predicate,
    find: `THEN \${isSessionOpen(\`\${row}.task_session_id\`)}
        AND NOT EXISTS`,
    replace: 'THEN NOT EXISTS',
    spec: activeness,
    title: 'the listing, the detail',
  },
  {
    rule: 'D4',
    says: 'A bundle with a row in an older turn is active in the current one.',
    file: predicate,
    find: 'OR odd.turn_id <> ${row}.turn_id)',
    replace: ')',
    spec: activeness,
    title: 'the listing, the detail',
  },
  {
    rule: 'D4',
    says: 'The workflow guard looks at the status alone.',
    file: 'src/clarification/persistence/active-sessions.query.ts',
    find: "WHERE m.task_session_id = s.id AND ${isActiveBundleRow(sql.dialect, 'm')}${sql.dialect.rowByRow})`,",
    replace: "WHERE m.task_session_id = s.id AND ${sql.dialect.metadataText('m.metadata', 'status')} = 'pending')`,",
    spec: activeness,
    title: 'the workflow guard',
  },
  {
    rule: 'X',
    says: 'Every pending row can be cancelled, of an older turn too.',
    file: 'src/clarification/persistence/close-bundles.tx.ts',
    find: 'const rows = await lockActiveRows(tx, sessionId, pendingId);',
    replace: `const { lockBundle } = await import('./bundles.repository.js');
  const rows = (await lockBundle(tx, pendingId)).filter((row) => row.status === 'pending');`,
    spec: activeness,
  },
  {
    rule: 'D1',
    says: 'A bundle is listed by its latest row.',
    file: query,
    find: '(SELECT MIN(d.created_at)',
    replace: '(SELECT MAX(d.created_at)',
    spec: 'test/listing/mixed-bundles.spec.ts',
  },
  {
    rule: 'D5',
    says: 'A task without a workspace is visible to nobody.',
    file: visible,
    find: "(${task}.workspace_id = '' OR NOT EXISTS",
    replace: "(${task}.workspace_id <> '' AND NOT EXISTS",
    spec: listing,
  },
  {
    rule: 'D6',
    says: 'The page after a bundle begins with that bundle.',
    file: query,
    find: '${bundleId}) > (${after.createdAt}',
    replace: '${bundleId}) >= (${after.createdAt}',
    spec: 'test/listing/paging.spec.ts',
  },
  {
    rule: 'M5',
    says: 'A row without a task is listed for nobody, whatever its session says.',
    file: query,
    find: "COALESCE(NULLIF(${row}.task_id, ''), (SELECT NULLIF(ts.task_id, '') FROM task_sessions ts WHERE ts.id = ${row}.task_session_id))",
    replace: "NULLIF(${row}.task_id, '')",
    spec: anyWorld,
  },
  {
    rule: 'M5a',
    says: 'A bundle of several tasks is listed for those who see its first row’s.',
    file: query,
    find: "? `COALESCE(${taskOf('b')}, '') <> COALESCE(${taskOf(row)}, '')`",
    replace: "? '1 = 0'",
    spec: oddRows,
  },
  {
    rule: 'L1',
    says: 'Rows that were written without the column that speeds the walk up are never listed.',
    file: query,
    find: 'UNION ALL SELECT * FROM (${unkeyed}) AS unkeyed',
    replace: 'UNION ALL SELECT * FROM (${unkeyed}) AS unkeyed WHERE 1 = 0',
    spec: anyWorld,
    title: 'bundle_created_at',
  },
  {
    rule: 'L1c',
    says: 'A task whose workspace does not exist is visible to nobody.',
    file: visible,
    find: `NOT EXISTS (SELECT 1 FROM workspaces vw
      WHERE vw.id = \${task}.workspace_id AND vw.owner_id NOT IN`,
    replace: `EXISTS (SELECT 1 FROM workspaces vw
      WHERE vw.id = \${task}.workspace_id AND vw.owner_id IN`,
    spec: anyWorld,
    title: 'full pages',
  },
  {
    rule: 'L2',
    says: 'A start ends the sessions whose agents only the last process knew.',
    file: 'src/clarification/delivery/recovery.ts',
    find: 'this.timer = setInterval(',
    replace: `await this.unitOfWork.run('recovery.sessions', Deadline.after(BUDGET_MS), (tx) => tx.query("UPDATE task_sessions SET state = 'failed'"));
    this.timer = setInterval(`,
    spec: listing,
  },
  {
    rule: 'L6',
    says: 'Bundles of one instant are in the reverse order of their ids.',
    file: query,
    find: "ORDER BY page.created_at, ${dialect.bytewise('page.bundle_id')}`,",
    replace: "ORDER BY page.created_at, ${dialect.bytewise('page.bundle_id')} DESC`,",
    spec: anyWorld,
  },
  {
    rule: 'L6',
    says: 'Bundles of one instant are in the order of the database’s language.',
    file: 'src/persistence/dialect.ts',
    find: 'bytewise: (expression) => `(${expression}) COLLATE "C"`,',
    replace: 'bytewise: (expression) => expression,',
    spec: anyWorld,
    on: 'postgres',
  },
  {
    rule: 'L7',
    says: 'Whoever names a workspace sees what is in it.',
    file: query,
    find: 'AND ${visible.sql}\n',
    replace: "AND (${visible.sql} OR ${workspace === undefined ? '1 = 0' : `t.workspace_id = ${workspace}`})\n",
    spec: anyWorld,
  },
  {
    rule: 'L8',
    says: 'created_since leaves out its own instant.',
    file: query,
    find: '`AND ${createdAt} >= ${since}`',
    replace: '`AND ${createdAt} > ${since}`',
    spec: anyWorld,
  },
  {
    rule: 'L9',
    says: 'A last page that is full has a cursor, to a page that is empty.',
    file: 'src/clarification/clarification-listing.ts',
    find: 'const last = found.length > limit ? page.at(-1) : undefined;',
    replace: 'const last = found.length >= limit ? page.at(-1) : undefined;',
    spec: listing,
  },
  {
    rule: 'L9',
    says: 'An empty cursor is a cursor that cannot be read.',
    file: 'src/tasks/page.ts',
    find: "return text === undefined || text === '' ? undefined : text;",
    replace: 'return text;',
    spec: 'test/http/tasks-input.spec.ts',
  },
  {
    rule: 'L10',
    says: 'A page is as long as was asked for.',
    file: 'src/tasks/page.ts',
    find: 'return Math.min(limit, LARGEST_PAGE_SIZE);',
    replace: 'return limit;',
    spec: listing,
  },
  {
    rule: 'L11',
    says: 'count also counts the first bundle of the next page.',
    file: 'src/clarification/clarification-listing.ts',
    find: 'count: page.length,',
    replace: 'count: found.length,',
    spec: anyWorld,
  },
  {
    rule: 'L12',
    says: 'Of a bundle that is answered in part only the rest is listed.',
    file: query,
    find: "isRowOfBundle(dialect, 'r', 'page.bundle_id'))}",
    replace: "`${isRowOfBundle(dialect, 'r', 'page.bundle_id')} AND ${isPendingRow(dialect, 'r')}`)}",
    spec: 'test/listing/mixed-bundles.spec.ts',
  },
  {
    rule: 'L14',
    says: 'With a cursor created_since is not looked at.',
    file: query,
    find: "since === undefined ? '' : `AND",
    replace: "since === undefined ? '' : after !== undefined ? `AND ${since} = ${since}` : `AND",
    spec: listing,
  },
  {
    rule: 'L16',
    says: 'A bundle is listed although a row of it has no question id.',
    file: query,
    find: "OR NOT ${dialect.metadataIsNonEmptyText('b.metadata', 'question_id')}",
    replace: '',
    spec: anyWorld,
  },
];
