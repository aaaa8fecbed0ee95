import type { Command } from 'commander';
import { NotFoundError } from '../../common/domain-error.js';
import { usableId } from '../../common/ids.js';
import type { CliContext } from '../cli-context.js';
import { UsageError } from '../cli-error.js';
import { withDatabase } from '../database-session.js';
import { WorkspaceOwnersRepository } from '../persistence/workspace-owners.repository.js';
import { table } from '../table.js';

/** `workspace list` and `assign`: who owns what decides who sees it. */
export function addWorkspaceCommand(program: Command, context: CliContext): void {
  const workspace = program.command('workspace').description('who owns which workspace');
  const owners = new WorkspaceOwnersRepository();

  workspace
    .command('list')
    .description('list all workspaces, oldest first')
    .action(async () => {
      const workspaces = await withDatabase(context.env(), {}, ({ reader, deadline }) => owners.list(reader, deadline));
      const rows = workspaces.map(({ id, name, ownerId, ownerName }) => [id, ownerName || ownerId || '-', name]);
      context.print(table(['ID', 'OWNER', 'NAME'], rows));
    });

  workspace
    .command('assign')
    .description('give a workspace to a user, or to nobody: everybody sees it then')
    .argument('<id>', 'as workspace list shows it')
    .option('--owner <name>', 'the new owner')
    .option('--no-owner', 'nobody')
    .action(async (id: string, { owner }: { owner?: string | boolean }) => {
      if (owner === undefined || owner === true) throw new UsageError('say who: --owner NAME, or --no-owner');
      await withDatabase(context.env(), {}, ({ accounts, unitOfWork, clock, deadline }) =>
        unitOfWork.run('workspace.assign', deadline, async (tx) => {
          const ownerId = owner === false ? '' : (await accounts.requireUser(tx, owner)).id;
          const isAssigned = await owners.assign(tx, usableId(id), ownerId, clock.now());
          if (!isAssigned) throw new NotFoundError(`there is no workspace with the id "${id}"`);
        }),
      );
      context.print(owner === false ? 'owned by nobody now, so everybody sees it' : `owned by ${owner} now`);
    });
}
