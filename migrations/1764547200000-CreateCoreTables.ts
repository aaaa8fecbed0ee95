import type { MigrationInterface, QueryRunner } from 'typeorm';

const SQLITE = [
  `CREATE TABLE server_starts (
    epoch INTEGER PRIMARY KEY NOT NULL,
    started_at TEXT NOT NULL
  )`,
  `CREATE TABLE users (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL
  )`,
  `CREATE TABLE access_tokens (
    id TEXT PRIMARY KEY NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL DEFAULT '',
    token_hash TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    last_used_at TEXT,
    expires_at TEXT,
    revoked_at TEXT
  )`,
  `CREATE INDEX idx_access_tokens_user ON access_tokens (user_id)`,
  `CREATE TABLE workspaces (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    owner_id TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
  )`,
  `CREATE TABLE tasks (
    id TEXT PRIMARY KEY NOT NULL,
    workspace_id TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'completed', 'cancelled')),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
  )`,
  `CREATE INDEX idx_tasks_created ON tasks (created_at, id)`,
  `CREATE INDEX idx_tasks_workspace_created ON tasks (workspace_id, created_at, id)`,
  `CREATE TABLE task_sessions (
    id TEXT PRIMARY KEY NOT NULL,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    state TEXT NOT NULL DEFAULT 'created'
      CHECK (state IN ('created', 'running', 'waiting_for_input', 'completed', 'failed', 'cancelled')),
    is_primary INTEGER NOT NULL DEFAULT 0,
    agent_token_hash TEXT UNIQUE,
    resume TEXT NOT NULL DEFAULT '{"mode":"pull"}',
    metadata TEXT NOT NULL DEFAULT '{}',
    started_at TEXT NOT NULL,
    completed_at TEXT,
    updated_at TEXT NOT NULL
  )`,
  `CREATE INDEX idx_sessions_task ON task_sessions (task_id, started_at, id)`,
  `CREATE UNIQUE INDEX idx_sessions_one_primary ON task_sessions (task_id) WHERE is_primary = 1`,
  `CREATE TABLE task_session_turns (
    id TEXT PRIMARY KEY NOT NULL,
    task_session_id TEXT NOT NULL REFERENCES task_sessions (id) ON DELETE CASCADE,
    task_id TEXT NOT NULL,
    started_at TEXT NOT NULL,
    completed_at TEXT,
    mailbox TEXT NOT NULL DEFAULT '' CHECK (mailbox IN ('', 'waiting', 'acknowledged')),
    metadata TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
  )`,
  `CREATE INDEX idx_turns_session_order ON task_session_turns (task_session_id, started_at, created_at, id)`,
  `CREATE INDEX idx_turns_mailbox ON task_session_turns (task_session_id, started_at, created_at, id)
    WHERE mailbox = 'waiting'`,
  `CREATE TABLE task_session_messages (
    id TEXT PRIMARY KEY NOT NULL,
    task_session_id TEXT NOT NULL REFERENCES task_sessions (id) ON DELETE CASCADE,
    task_id TEXT DEFAULT '',
    turn_id TEXT NOT NULL REFERENCES task_session_turns (id) ON DELETE CASCADE,
    author_type TEXT NOT NULL CHECK (author_type IN ('user', 'agent', 'system')),
    author_id TEXT NOT NULL DEFAULT '',
    content TEXT NOT NULL DEFAULT '',
    requests_input INTEGER NOT NULL DEFAULT 0,
    type TEXT NOT NULL DEFAULT 'message',
    client_message_id TEXT,
    queued_at TEXT,
    bundle_created_at TEXT,
    metadata TEXT NOT NULL DEFAULT '{}',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
  )`,
  `CREATE INDEX idx_messages_session_created ON task_session_messages (task_session_id, created_at, id)`,
  `CREATE INDEX idx_messages_turn ON task_session_messages (turn_id)`,
  `CREATE UNIQUE INDEX idx_messages_client_id ON task_session_messages (task_session_id, client_message_id)
    WHERE client_message_id IS NOT NULL`,
  `CREATE INDEX idx_messages_queue ON task_session_messages (task_session_id, queued_at, id)
    WHERE queued_at IS NOT NULL`,
  `CREATE INDEX idx_messages_metadata_pending_id ON task_session_messages
    (task_session_id, json_extract(metadata, '$.pending_id'))`,
  `CREATE INDEX idx_messages_metadata_pending_id_lookup ON task_session_messages
    (json_extract(metadata, '$.pending_id'))`,
];

const POSTGRES = [
  `CREATE TABLE server_starts (
    epoch INTEGER PRIMARY KEY NOT NULL,
    started_at TIMESTAMPTZ(3) NOT NULL
  )`,
  `CREATE TABLE users (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at TIMESTAMPTZ(3) NOT NULL
  )`,
  `CREATE TABLE access_tokens (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL DEFAULT '',
    token_hash TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at TIMESTAMPTZ(3) NOT NULL,
    last_used_at TIMESTAMPTZ(3),
    expires_at TIMESTAMPTZ(3),
    revoked_at TIMESTAMPTZ(3)
  )`,
  `CREATE INDEX idx_access_tokens_user ON access_tokens (user_id)`,
  `CREATE TABLE workspaces (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    owner_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    created_at TIMESTAMPTZ(3) NOT NULL,
    updated_at TIMESTAMPTZ(3) NOT NULL
  )`,
  `CREATE TABLE tasks (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    title TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'completed', 'cancelled')),
    created_at TIMESTAMPTZ(3) NOT NULL,
    updated_at TIMESTAMPTZ(3) NOT NULL
  )`,
  `CREATE INDEX idx_tasks_created ON tasks (created_at, id)`,
  `CREATE INDEX idx_tasks_workspace_created ON tasks (workspace_id, created_at, id)`,
  `CREATE TABLE task_sessions (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    state TEXT NOT NULL DEFAULT 'created'
      CHECK (state IN ('created', 'running', 'waiting_for_input', 'completed', 'failed', 'cancelled')),
    is_primary INTEGER NOT NULL DEFAULT 0,
    agent_token_hash TEXT COLLATE "C" UNIQUE,
    resume TEXT NOT NULL DEFAULT '{"mode":"pull"}',
    metadata TEXT NOT NULL DEFAULT '{}',
    started_at TIMESTAMPTZ(3) NOT NULL,
    completed_at TIMESTAMPTZ(3),
    updated_at TIMESTAMPTZ(3) NOT NULL
  )`,
  `CREATE INDEX idx_sessions_task ON task_sessions (task_id, started_at, id)`,
  `CREATE UNIQUE INDEX idx_sessions_one_primary ON task_sessions (task_id) WHERE is_primary = 1`,
  `CREATE TABLE task_session_turns (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    task_session_id TEXT COLLATE "C" NOT NULL REFERENCES task_sessions (id) ON DELETE CASCADE,
    task_id TEXT COLLATE "C" NOT NULL,
    started_at TIMESTAMPTZ(3) NOT NULL,
    completed_at TIMESTAMPTZ(3),
    mailbox TEXT NOT NULL DEFAULT '' CHECK (mailbox IN ('', 'waiting', 'acknowledged')),
    metadata TEXT NOT NULL DEFAULT '{}' CHECK (metadata::jsonb IS NOT NULL),
    created_at TIMESTAMPTZ(3) NOT NULL,
    updated_at TIMESTAMPTZ(3) NOT NULL
  )`,
  `CREATE INDEX idx_turns_session_order ON task_session_turns (task_session_id, started_at, created_at, id)`,
  `CREATE INDEX idx_turns_mailbox ON task_session_turns (task_session_id, started_at, created_at, id)
    WHERE mailbox = 'waiting'`,
  `CREATE TABLE task_session_messages (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    task_session_id TEXT COLLATE "C" NOT NULL REFERENCES task_sessions (id) ON DELETE CASCADE,
    task_id TEXT COLLATE "C" DEFAULT '',
    turn_id TEXT COLLATE "C" NOT NULL REFERENCES task_session_turns (id) ON DELETE CASCADE,
    author_type TEXT NOT NULL CHECK (author_type IN ('user', 'agent', 'system')),
    author_id TEXT NOT NULL DEFAULT '',
    content TEXT NOT NULL DEFAULT '',
    requests_input INTEGER NOT NULL DEFAULT 0,
    type TEXT NOT NULL DEFAULT 'message',
    client_message_id TEXT COLLATE "C",
    queued_at TIMESTAMPTZ(3),
    bundle_created_at TIMESTAMPTZ(3),
    metadata TEXT NOT NULL DEFAULT '{}',
    created_at TIMESTAMPTZ(3) NOT NULL,
    updated_at TIMESTAMPTZ(3) NOT NULL
  )`,
  `CREATE INDEX idx_messages_session_created ON task_session_messages (task_session_id, created_at, id)`,
  `CREATE INDEX idx_messages_turn ON task_session_messages (turn_id)`,
  `CREATE UNIQUE INDEX idx_messages_client_id ON task_session_messages (task_session_id, client_message_id)
    WHERE client_message_id IS NOT NULL`,
  `CREATE INDEX idx_messages_queue ON task_session_messages (task_session_id, queued_at, id)
    WHERE queued_at IS NOT NULL`,
  `CREATE INDEX idx_messages_metadata_pending_id ON task_session_messages
    (task_session_id, (metadata::jsonb->>'pending_id'))`,
  `CREATE INDEX idx_messages_metadata_pending_id_lookup ON task_session_messages
    ((metadata::jsonb->>'pending_id'))`,
];

/**
 * Users, tokens, workspaces, tasks, sessions, turns and messages. A question's whole life is in the metadata of
 * its messages: there is no table for clarifications and no record of claims beside them.
 */
export class CreateCoreTables1764547200000 implements MigrationInterface {
  readonly name = 'CreateCoreTables1764547200000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of runner.connection.options.type === 'postgres' ? POSTGRES : SQLITE) {
      await runner.query(statement);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of [
      'task_session_messages',
      'task_session_turns',
      'task_sessions',
      'tasks',
      'workspaces',
      'access_tokens',
      'users',
      'server_starts',
    ]) {
      await runner.query(`DROP TABLE ${table}`);
    }
  }
}
