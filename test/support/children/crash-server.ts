// [die]: real servers, each on a database of its own, that stop at a crossing, by lines of JSON on standard input:
//
//   {"open": ID, "env": {…}}                        starts one as main does; {"id", "opened": URL} or {"id", "failed": …}
//   {"open": ID, "env": {…}, "stopAt": CROSSING}    counts its crossings from the first on; "" stops at none
//   {"arm": ID, "stopAt": CROSSING}                 counts them from now on; {"id", "armed": true}
//   {"arm": ID, "stopAt": …, "holdAt": CROSSING}    and what comes to this one waits there, until {"letGo": ID}
//
// Each crossing is told as {"id", "crossed": NAME}, the last one as {"id", "stopped": NAME}. There the process kills
// itself, with `die`; without, only this server stands still for ever, for whoever kills the process, so that many can
// be killed at their crossings for the cost of one process.
import { createInterface } from 'node:readline';
import { createApp, listen } from '../../../src/app.setup.js';
import { loadEnv } from '../../../src/config/env.js';
import { UnitOfWork } from '../../../src/persistence/unit-of-work.js';
import { ResumePort } from '../../../src/tasks/resume/resume.port.js';
import { Crossings, watchCalls, watchReplies, watchTransactions } from './crossings.js';

interface Told {
  readonly open?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly arm?: string;
  readonly stopAt?: string;
  readonly holdAt?: string;
  readonly letGo?: string;
}

const diesAlone = process.argv[2] === 'die';
const servers = new Map<string, Crossings>();

function say(message: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function crossingsOf(id: string): Crossings {
  const stopped = (name: string): void => {
    say({ id, stopped: name });
    if (diesAlone) process.kill(process.pid, 'SIGKILL');
  };
  const crossings = new Crossings((name) => say({ id, crossed: name }), stopped);
  servers.set(id, crossings);
  return crossings;
}

async function open(id: string, told: Told): Promise<void> {
  try {
    const crossings = crossingsOf(id);
    if (told.stopAt !== undefined) crossings.arm(told.stopAt);
    const app = await createApp(loadEnv({ PORT: '0', LOG_LEVEL: 'silent', RATE_LIMIT_PER_MINUTE: '0', ...told.env }));
    watchTransactions(app.get(UnitOfWork), crossings);
    watchCalls(app.get(ResumePort, { strict: false }), crossings);
    watchReplies(app.getHttpServer(), crossings);
    say({ id, opened: await listen(app) });
  } catch (error) {
    say({ id, failed: (error as Error).stack });
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const told = JSON.parse(line) as Told;
  if (told.open !== undefined) void open(told.open, told);
  if (told.arm !== undefined) {
    servers.get(told.arm)?.arm(told.stopAt, told.holdAt);
    say({ id: told.arm, armed: true });
  }
  if (told.letGo !== undefined) servers.get(told.letGo)?.letGo();
});
// Whoever started it has gone.
process.stdin.on('end', () => process.exit(0));
say({ ready: true });
