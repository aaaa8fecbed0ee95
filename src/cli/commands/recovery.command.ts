import type { Command } from 'commander';
import { OfflineRecovery, type LeftOver, type ReservedTurn } from '../../clarification/delivery/offline-recovery.js';
import type { Deadline } from '../../common/deadline.js';
import type { CliContext } from '../cli-context.js';
import { CommandFailedError } from '../cli-error.js';
import { withDatabase } from '../database-session.js';
import { table } from '../table.js';

const DONE = {
  deleted: 'deleted: its agent was never called; the next start makes its question answerable again',
  kept: 'kept as an ordinary turn: its agent may have the answer, which the next start keeps as history',
} as const;

/** `recovery show` and `discard`: what the next start of the server would have to see to. */
export function addRecoveryCommand(program: Command, context: CliContext): void {
  const recovery = program
    .command('recovery')
    .description('what an earlier server left unfinished (only while no server runs)');

  recovery
    .command('show')
    .description('list turns reserved for an answer, turns not announced yet, and answers not handed over')
    .action(async () => {
      const leftOver = await offline(context, (recovering, deadline) => recovering.leftOver(deadline));
      context.print(shown(leftOver));
    });

  recovery
    .command('discard')
    .description('let go of a reserved turn that cannot be recovered')
    .argument('<turn-id>', 'as recovery show shows it')
    .action(async (turnId: string) => {
      const discarded = await offline(context, (recovering, deadline) => recovering.discard(turnId, deadline));
      if (discarded === 'not-reserved') {
        throw new CommandFailedError(`there is no reserved turn with the id "${turnId}"; recovery show lists them`);
      }
      context.print(DONE[discarded]);
    });
}

function offline<T>(context: CliContext, work: (recovering: OfflineRecovery, deadline: Deadline) => Promise<T>) {
  return withDatabase(context.env(), { isServerStopped: true }, ({ unitOfWork, reader, clock, deadline }) =>
    work(new OfflineRecovery(unitOfWork, reader, clock), deadline),
  );
}

function shown({ reservations, unannounced, intents }: LeftOver): string {
  const sections = [
    section(
      'Turns reserved for handing over an answer',
      ['TURN', 'SESSION', 'BUNDLE', 'ATTEMPTED', 'MESSAGES', 'NEXT START'],
      reservations.map(reservationCells),
    ),
    section(
      'Turns whose events are still to be sent',
      ['TURN', 'SESSION'],
      unannounced.map(({ turnId, sessionId }) => [turnId, sessionId]),
    ),
    section(
      'Bundles whose hand-over is not settled',
      ['BUNDLE', 'SESSION'],
      intents.map(({ pendingId, sessionId }) => [pendingId, sessionId]),
    ),
  ];
  return sections.filter((text) => text !== '').join('\n\n') || 'nothing is left to recover';
}

function section(title: string, columns: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? '' : `${title}\n${table(columns, rows)}`;
}

function reservationCells({ nextStart, ...turn }: ReservedTurn): string[] {
  return [
    turn.turnId,
    turn.sessionId,
    turn.pendingId || '-',
    turn.isAttempted ? 'yes' : 'no',
    turn.hasMessages ? 'yes' : 'no',
    typeof nextStart === 'string' ? `${nextStart} it` : `fail: ${nextStart.failsBecause}`,
  ];
}
