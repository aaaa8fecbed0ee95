import type { Command } from 'commander';
import type { CliContext } from '../cli-context.js';
import { withDatabase } from '../database-session.js';
import { parseLifetime } from '../lifetime.js';
import { table } from '../table.js';

/** `token create`, `list` and `revoke`. */
export function addTokenCommand(program: Command, context: CliContext): void {
  const token = program.command('token').description('access tokens of users');

  token
    .command('create')
    .description('make a token; prints it once, alone on standard output (only its hash is stored)')
    .requiredOption('--user <name>', 'whose token it is')
    .option('--name <name>', 'what it is for, shown by token list', '')
    .option('--expires <lifetime>', 'how long it works, such as 90m, 12h or 30d (default: until revoked)')
    .action(async ({ user, name, expires }: { user: string; name: string; expires?: string }) => {
      const lifetimeMs = expires === undefined ? null : parseLifetime(expires);
      const created = await withDatabase(context.env(), {}, ({ accounts, deadline }) =>
        accounts.createToken({ userName: user, name, lifetimeMs }, deadline),
      );
      context.print(created.token);
    });

  token
    .command('list')
    .description('list all tokens, oldest first')
    .action(async () => {
      const { tokens, now } = await withDatabase(context.env(), {}, async ({ accounts, clock, deadline }) => ({
        tokens: await accounts.listTokens(deadline),
        now: clock.now(),
      }));
      const rows = tokens.map((each) => [
        each.id,
        each.userName,
        each.name === '' ? '-' : each.name,
        each.createdAt,
        each.lastUsedAt ?? 'never',
        each.expiresAt ?? 'never',
        each.revokedAt !== null ? `revoked ${each.revokedAt}` : isOver(each.expiresAt, now) ? 'expired' : 'active',
      ]);
      context.print(table(['ID', 'USER', 'NAME', 'CREATED', 'LAST USED', 'EXPIRES', 'STATE'], rows));
    });

  token
    .command('revoke')
    .description('end a token; what it holds open in a running server ends within seconds')
    .argument('<id>', 'as token list shows it')
    .action(async (id: string) => {
      const revokedAt = await withDatabase(context.env(), {}, ({ accounts, deadline }) =>
        accounts.revokeToken(id, deadline),
      );
      context.print(`revoked ${revokedAt}`);
    });
}

function isOver(expiresAt: string | null, now: string): boolean {
  return expiresAt !== null && expiresAt <= now;
}
