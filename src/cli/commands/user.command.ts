import type { Command } from 'commander';
import type { CliContext } from '../cli-context.js';
import { withDatabase } from '../database-session.js';

/** `user create`: the one command that makes a database where there is none, so that it can precede the first start. */
export function addUserCommand(program: Command, context: CliContext): void {
  const user = program.command('user').description('people and bots who answer questions');

  user
    .command('create')
    .description('make a user; prints its id')
    .argument('<name>', 'unique, 1 to 100 characters')
    .action(async (name: string) => {
      const created = await withDatabase(context.env(), { createWhenMissing: true }, ({ accounts, deadline }) =>
        accounts.createUser(name, deadline),
      );
      context.print(created.id);
    });
}
