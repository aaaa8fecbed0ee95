import { withDatabase } from '../../src/cli/database-session.js';
import { loadEnv } from '../../src/config/env.js';
import type { User } from './world.js';

const USERS = 4;

/** Makes users on a database on which no server runs yet. @returns a token of each */
export function createUsers(databaseUrl: string): Promise<readonly string[]> {
  const env = loadEnv({ DATABASE_URL: databaseUrl });
  return withDatabase(env, { createWhenMissing: true }, async ({ accounts, deadline }) => {
    const tokens: string[] = [];
    for (let index = 0; index < USERS; index += 1) {
      const { name } = await accounts.createUser(`crowd ${process.pid}-${Date.now()}-${index}`, deadline);
      const { token } = await accounts.createToken({ userName: name, name: '', lifetimeMs: null }, deadline);
      tokens.push(token);
    }
    return tokens;
  });
}

/** A workspace for each. */
export function withWorkspaces(url: string, tokens: readonly string[]): Promise<readonly User[]> {
  return Promise.all(
    tokens.map(async (token) => {
      const reply = await fetch(`${url}/api/v1/workspaces`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Crowd' }),
      });
      const { id } = (await reply.json()) as { id: string };
      return { token, workspaceId: id };
    }),
  );
}
