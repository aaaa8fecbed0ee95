import { LONGEST_ID } from '../common/ids.js';

/** The metadata keys that SQL may look into. */
export type MetadataKey =
  | 'pending_id'
  | 'question_id'
  | 'status'
  | 'agent_disconnected'
  | 'response_delivery_pending'
  | 'prompt_dispatch_pending'
  | 'prompt_dispatch_attempted'
  | 'prompt_dispatch_start_event_pending'
  | 'resumed_from_pending_id';

export type Engine = 'sqlite' | 'postgres';

/**
 * Every difference between the two engines' SQL, and its reason. `column` is a column name, alias included
 * (`m.metadata`), always a constant of ours.
 */
export interface Dialect {
  readonly engine: Engine;
  /** The value of a key as text, NULL when absent. Its text equals the index definitions': the planner matches it. */
  metadataText(column: string, key: MetadataKey): string;
  /** True when the key holds a JSON string that is not empty. */
  metadataIsNonEmptyText(column: string, key: MetadataKey): string;
  /** True when the key holds a JSON string that {@link usableId} takes for an id. */
  metadataIsId(column: string, key: MetadataKey): string;
  /** True when the key holds `true`, `"true"`, `1` or `"1"`, never NULL. */
  metadataFlag(column: string, key: MetadataKey): string;
  /** Strict JSON text of the whole document (SQLite also stores JSON5, which JSON.parse refuses). */
  metadataDocument(column: string): string;
  /** The document with `status` replaced by the claim's private value. */
  metadataMarkedResponding(column: string): string;
  /** The texts of a JSON array bound as one parameter, for `x IN …`: one statement text however many there are. */
  boundTexts(placeholder: `$${number}`): string;
  /** Bytewise order of an extracted text, which PostgreSQL would otherwise sort by the database's language. */
  bytewise(expression: string): string;
  /**
   * Appended to the sub-query of an EXISTS that is to be asked row by row, by index, in the order of the rows around it.
   * PostgreSQL would otherwise make it a join, and by its guesses one that reads the whole table.
   */
  readonly rowByRow: string;
  /** An inner join whose rows are looked up one left-hand row at a time, for the same reason. */
  joinRowByRow(table: string, alias: string, condition: string): string;
  /**
   * Appended to a table's alias: it is to be read by this index. SQLite, which knows no sizes of partial indexes before
   * ANALYZE, would rather take one that gives the order of a DISTINCT, be it of the whole table.
   */
  byIndex(name: string): string;
  /** Appended to `SELECT … FROM task_sessions`: serialises per session without blocking foreign-key inserts. */
  readonly lockSession: string;
  /** Appended to `SELECT … FROM task_session_turns|messages … ORDER BY id`. */
  readonly lockRows: string;
}

const sqlite: Dialect = {
  engine: 'sqlite',
  metadataText: (column, key) => `json_extract(${column}, '$.${key}')`,
  metadataIsNonEmptyText: (column, key) =>
    `(COALESCE(json_type(${column}, '$.${key}'), '') = 'text' AND json_extract(${column}, '$.${key}') <> '')`,
  // Only SQLite holds U+0000 and lone surrogates in JSON; GLOB reads the latter as U+FFFD.
  metadataIsId: (column, key) =>
    `CASE WHEN json_type(${column}, '$.${key}') = 'text'
      THEN length(json_extract(${column}, '$.${key}')) BETWEEN 1 AND ${LONGEST_ID}
        AND instr(json_extract(${column}, '$.${key}'), char(0)) = 0
        AND json_extract(${column}, '$.${key}') NOT GLOB '*' || char(65533) || '*'
      ELSE FALSE END`,
  // The cast keeps 1.0 out, as the text comparison does on PostgreSQL; JSON true is 1 here.
  metadataFlag: (column, key) => `COALESCE(CAST(json_extract(${column}, '$.${key}') AS TEXT), '') IN ('1', 'true')`,
  metadataDocument: (column) => `json(${column})`,
  metadataMarkedResponding: (column) => `json_set(${column}, '$.status', 'responding')`,
  boundTexts: (placeholder) => `(SELECT value FROM json_each(${placeholder}))`,
  bytewise: (expression) => expression,
  rowByRow: '',
  joinRowByRow: (table, alias, condition) => `JOIN ${table} ${alias} ON ${condition}`,
  byIndex: (name) => `INDEXED BY ${name}`,
  // One writer: BEGIN IMMEDIATE has already serialised everything.
  lockSession: '',
  lockRows: '',
};

const postgres: Dialect = {
  engine: 'postgres',
  metadataText: (column, key) => `${column}::jsonb->>'${key}'`,
  // Each `::jsonb` reads the whole document again, so one has to do: only a text's JSON begins with a quotation mark.
  metadataIsNonEmptyText: (column, key) => `COALESCE((${column}::jsonb->'${key}')::text, '') LIKE '"_%"'`,
  metadataIsId: (column, key) =>
    `CASE WHEN jsonb_typeof(${column}::jsonb->'${key}') = 'string'
      THEN (${column}::jsonb->>'${key}') ~ '^[^\\uFFFD]{1,${LONGEST_ID}}$' ELSE FALSE END`,
  metadataFlag: (column, key) => `COALESCE(${column}::jsonb->>'${key}', '') IN ('1', 'true')`,
  metadataDocument: (column) => column,
  metadataMarkedResponding: (column) => `jsonb_set(${column}::jsonb, '{status}', '"responding"')::text`,
  boundTexts: (placeholder) => `(SELECT jsonb_array_elements_text(${placeholder}::jsonb))`,
  bytewise: (expression) => `(${expression}) COLLATE "C"`,
  // An OFFSET, even of none, keeps a sub-query from being merged into what is around it.
  rowByRow: ' OFFSET 0',
  joinRowByRow: (table, alias, condition) =>
    `JOIN LATERAL (SELECT * FROM ${table} ${alias} WHERE ${condition} OFFSET 0) AS ${alias} ON TRUE`,
  byIndex: () => '',
  // Plain FOR UPDATE would block every insert whose foreign key names the session.
  lockSession: ' FOR NO KEY UPDATE',
  lockRows: ' FOR UPDATE',
};

export function dialectOf(engine: Engine): Dialect {
  return engine === 'sqlite' ? sqlite : postgres;
}
