// Preloaded into a server that is measured (`node --expose-gc --import …/probe.js`), which knows nothing of it: answers
// its parent's questions about memory and processor time, and records, while asked to, every statement that goes to the
// database drivers. Otherwise what it has put around the drivers' methods hands on. The process ends with its parent.
import { Server } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import process from 'node:process';
import pg from 'pg';
import sqlite3 from 'sqlite3';

/** Names the request whose statements are recorded. */
const MARK = 'x-bench-record';

const questions = {
  async memory() {
    // Twice, with a turn of the loop between: what the first one finalises the second one frees.
    globalThis.gc();
    await pause(50);
    globalThis.gc();
    const { heapUsed, external, rss } = process.memoryUsage();
    return { heapUsed, external, rss };
  },
  cpu() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  record() {
    start();
  },
  recorded() {
    return stop();
  },
  settings() {
    return settings();
  },
};

process.on('message', async ({ id, ask }) => {
  try {
    process.send({ id, value: await questions[ask]() });
  } catch (error) {
    process.send({ id, error: error.message });
  }
});
process.on('disconnect', () => process.exit(1));
// A server that is told to stop must be able to end.
process.channel?.unref();

/** Connections in the order in which they were first used, each with whether it was seen to begin a transaction. */
const connections = new Map();
let recording;

function start() {
  recording = { statements: [], running: new Set(), from: undefined, to: undefined };
}

/** What was begun between the arrival of the marked request and the end of its reply, in that order. */
function stop() {
  const { statements, from, to } = recording;
  recording = undefined;
  if (from === undefined || to === undefined) throw new Error('no marked request came and was answered');
  return statements.slice(from, to).map(({ connection, overlaps, ...statement }) => ({
    ...statement,
    role: connections.get(connection).hasBegun ? 'writer' : 'reader',
    overlaps: overlaps.map((index) => index - from).filter((index) => index >= 0),
  }));
}

/** @returns to be told how many rows it gave or changed */
function begun(connection, statement) {
  if (!connections.has(connection)) connections.set(connection, { hasBegun: false });
  if (/^\s*BEGIN\b/i.test(statement.text)) connections.get(connection).hasBegun = true;
  const { statements, running } = recording;
  const index = statements.length;
  const entry = { ...statement, connection, overlaps: [...running], rows: 0 };
  statements.push(entry);
  running.add(index);
  return (rows) => {
    entry.rows = rows;
    running.delete(index);
  };
}

/** From the start, before anybody can keep the original for himself. */
function surround(prototype, name, recorded) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    return recording === undefined ? original.apply(this, args) : recorded(original, this, args);
  };
}

surround(Server.prototype, 'emit', (original, server, args) => {
  const [event, request, response] = args;
  if (event === 'request' && request.headers[MARK] !== undefined) {
    const current = recording;
    current.from = current.statements.length;
    response.once('finish', () => {
      current.to = current.statements.length;
    });
  }
  return original.apply(server, args);
});

// The driver's own methods of a database make a statement and call that: so the text is seen once, where it runs, and
// what was made by `prepare` is what is run again and again.
let ofDatabase;
const prepared = new WeakMap();

for (const method of ['run', 'get', 'all', 'each']) {
  surround(sqlite3.Database.prototype, method, (original, database, args) => {
    ofDatabase = database;
    try {
      return original.apply(database, args);
    } finally {
      ofDatabase = undefined;
    }
  });
  surround(sqlite3.Statement.prototype, method, (original, statement, args) => {
    const callback = typeof args.at(-1) === 'function' ? args.pop() : undefined;
    const values = args.length === 1 ? (args[0] ?? []) : args;
    const isPrepared = prepared.has(statement);
    const ended = begun(prepared.get(statement) ?? ofDatabase, {
      text: statement.sql,
      values: Array.isArray(values) ? [...values] : [values],
      method,
      name: isPrepared ? 'prepared' : '',
    });
    return original.call(statement, ...args, function (error, result) {
      // Of anything but a change SQLite tells the count of the change before it.
      ended(
        Array.isArray(result) ? result.length : /^\s*(INSERT|UPDATE|DELETE)\b/i.test(statement.sql) ? this.changes : 0,
      );
      callback?.call(this, error, result);
    });
  });
}

const prepare = sqlite3.Database.prototype.prepare;
sqlite3.Database.prototype.prepare = function (...args) {
  const statement = prepare.apply(this, args);
  prepared.set(statement, this);
  return statement;
};

surround(sqlite3.Database.prototype, 'exec', (original, database, [text, callback]) => {
  const ended = begun(database, { text, values: null, method: 'exec', name: '' });
  return original.call(database, text, function (error) {
    ended(0);
    callback?.call(this, error);
  });
});

surround(pg.Client.prototype, 'query', (original, client, args) => {
  const [config, given] = args;
  const isText = typeof config === 'string';
  const ended = begun(client, {
    text: isText ? config : config.text,
    values: (isText ? (Array.isArray(given) ? given : undefined) : config.values) ?? null,
    method: 'query',
    name: isText ? '' : (config.name ?? ''),
  });
  const count = (result) => ended(Array.isArray(result) ? 0 : (result?.rowCount ?? 0));
  const last = args.at(-1);
  if (typeof last === 'function') {
    args[args.length - 1] = (error, result) => {
      count(result);
      last(error, result);
    };
    return original.apply(client, args);
  }
  const sent = original.apply(client, args);
  sent?.then?.(count, () => ended(0));
  return sent;
});

const PRAGMAS = [
  'journal_mode',
  'synchronous',
  'foreign_keys',
  'busy_timeout',
  'cache_size',
  'mmap_size',
  'temp_store',
  'wal_autocheckpoint',
  'page_size',
];

/** What has been set on the connections that the last recording saw, by role. */
async function settings() {
  const found = {};
  for (const [connection, { hasBegun }] of connections) {
    const role = hasBegun ? 'writer' : 'reader';
    if (connection instanceof sqlite3.Database) found[role] = await sqliteSettings(connection);
    else if (connection instanceof pg.Client) found[role] ??= await postgresSettings(connection);
  }
  return found;
}

async function sqliteSettings(database) {
  const set = {};
  for (const pragma of PRAGMAS) {
    const row = await new Promise((resolve, reject) => {
      database.get(`PRAGMA ${pragma}`, (error, result) => (error ? reject(error) : resolve(result)));
    });
    set[pragma] = Object.values(row ?? {})[0];
  }
  return set;
}

async function postgresSettings(client) {
  const { rows } = await client.query("SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name");
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}
