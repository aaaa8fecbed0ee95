import { Command, CommanderError } from 'commander';
import { DomainError } from '../common/domain-error.js';
import { VERSION } from '../common/version.js';
import { ConfigError } from '../config/env.js';
import type { CliContext } from './cli-context.js';
import { CommandFailedError, UsageError } from './cli-error.js';
import { addBackupCommand } from './commands/backup.command.js';
import { addQuestionCommand } from './commands/question.command.js';
import { addRecoveryCommand } from './commands/recovery.command.js';
import { addTokenCommand } from './commands/token.command.js';
import { addUserCommand } from './commands/user.command.js';
import { addWorkspaceCommand } from './commands/workspace.command.js';
import { terminalLine } from './terminal-text.js';

/** 0: done. 1: it could not be done. 2: what was typed, or configured, cannot be used. */
export type ExitCode = 0 | 1 | 2;

/**
 * Runs one command line (without node and script). Results go to `context.print`; a failure is one line for
 * `complain`, whatever went wrong.
 */
export async function runCommandLine(
  args: readonly string[],
  context: CliContext,
  complain: (line: string) => void,
): Promise<ExitCode> {
  try {
    await programFor(context).parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    complain(`error: ${terminalLine(describe(error))}`);
    return isUsageFault(error) ? 2 : 1;
  }
}

function programFor(context: CliContext): Command {
  const program = new Command('clarion')
    .description(
      "Clarion's operator commands. The database and the server are those of the environment, or of .env. " +
        'Without any argument, the command that the package installs is the server itself.',
    )
    .version(VERSION)
    // Subcommands inherit these only when they are set before.
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({ writeOut: (text) => context.print(text.trimEnd()), outputError: () => undefined })
    .helpCommand(false);
  addUserCommand(program, context);
  addTokenCommand(program, context);
  addWorkspaceCommand(program, context);
  addBackupCommand(program, context);
  addRecoveryCommand(program, context);
  addQuestionCommand(program, context);
  for (const group of [program, ...program.commands]) {
    if (group.commands.length > 0) group.allowExcessArguments().action(() => refuseGroup(group));
  }
  return program;
}

/** `clarion`, `clarion token` and `clarion token frobnicate` name no command. */
function refuseGroup(group: Command): never {
  const [given] = group.args;
  const names = group.commands.map((command) => command.name()).join(', ');
  throw new UsageError(
    `${given === undefined ? 'a command is missing' : `there is no command "${given}"`}; one of ${names} (--help tells more)`,
  );
}

function isUsageFault(error: unknown): boolean {
  if (error instanceof CommanderError || error instanceof UsageError || error instanceof ConfigError) return true;
  return error instanceof DomainError && error.code === 'validation_failed';
}

function describe(error: unknown): string {
  if (error instanceof CommanderError) return error.message.replace(/^error: /, '');
  if (error instanceof DomainError || error instanceof UsageError) return error.message;
  if (error instanceof CommandFailedError || error instanceof ConfigError) return error.message;
  if (!(error instanceof Error)) return 'unknown failure';
  // Drivers put several failed addresses into one error without a message of its own.
  const { code } = error as NodeJS.ErrnoException;
  return [error.message, code].find((text) => text !== undefined && text !== '') ?? error.name;
}
