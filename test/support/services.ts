import { afterEach } from '@jest/globals';
import { loadEnv, type Env } from '../../src/config/env.js';
import { EventBus } from '../../src/events/event-bus.js';
import { AgentTokens } from '../../src/identity/agent-tokens.js';
import { CallerLifetime } from '../../src/identity/caller-lifetime.js';
import { AccessTokensRepository } from '../../src/identity/persistence/access-tokens.repository.js';
import { BundleAccess } from '../../src/clarification/bundle-access.js';
import { ClarificationListing } from '../../src/clarification/clarification-listing.js';
import { ClarificationPortAdapter } from '../../src/clarification/clarification-port.adapter.js';
import { ClarificationRequests } from '../../src/clarification/clarification-requests.js';
import { ClarificationResolver } from '../../src/clarification/clarification-resolver.js';
import { AnswerDispatch } from '../../src/clarification/delivery/answer-dispatch.js';
import { BundleWait } from '../../src/clarification/delivery/bundle-wait.js';
import { OutcomeDelivery } from '../../src/clarification/delivery/outcome-delivery.js';
import { RecoveryMetrics } from '../../src/clarification/delivery/recovery-metrics.js';
import { Recovery } from '../../src/clarification/delivery/recovery.js';
import { RestWait } from '../../src/clarification/http/rest-wait.js';
import { WaiterRegistry } from '../../src/clarification/delivery/waiter-registry.js';
import { ResponseMetrics } from '../../src/clarification/response-metrics.js';
import { ResponsePhases } from '../../src/clarification/response-phases.js';
import { Log } from '../../src/observability/log.js';
import { Metrics } from '../../src/observability/metrics.js';
import type { UnitOfWork } from '../../src/persistence/unit-of-work.js';
import { TaskAccess } from '../../src/tasks/authorization/task-access.js';
import { Clarifications } from '../../src/tasks/clarification.port.js';
import { Mailbox } from '../../src/tasks/mailbox/mailbox.service.js';
import { Messages } from '../../src/tasks/messages/messages.service.js';
import { PendingActions } from '../../src/tasks/pending-actions.js';
import { TurnDispatcher } from '../../src/tasks/resume/turn-dispatcher.js';
import { Sessions } from '../../src/tasks/sessions/sessions.service.js';
import { Tasks } from '../../src/tasks/tasks.service.js';
import { ReservationBarrier } from '../../src/tasks/turns/reservation-barrier.js';
import { Turns } from '../../src/tasks/turns/turns.service.js';
import { Workspaces } from '../../src/tasks/workspaces.service.js';
import { watchClaims } from './claim-watch.js';
import type { TestDatabase } from './engines.js';
import { ScriptedPort } from './scripted-port.js';
import type { StatementRecorder } from './statement-recorder.js';
import { TestClock } from './test-clock.js';

export interface ServiceOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Put around the unit of work, e.g. to hold one transaction open at a named step. */
  readonly wrap?: (unitOfWork: UnitOfWork) => UnitOfWork;
  readonly recorder?: StatementRecorder;
  /** The way to agents' webhooks. Left out, every call is accepted. */
  readonly port?: ScriptedPort;
}

const dispatchers: TurnDispatcher[] = [];

// One that is left behind would wake up in a later test and send what that one owes, by its own clock and port.
afterEach(async () => {
  for (const dispatcher of dispatchers.splice(0)) {
    dispatcher.onModuleDestroy();
    await dispatcher.beforeApplicationShutdown();
  }
});

export type Services = ReturnType<typeof servicesOn>;

/** The services on a test's database without HTTP: for interleavings that a request cannot place. */
export function servicesOn(database: TestDatabase, options: ServiceOptions = {}) {
  const env: Env = loadEnv({ LOG_LEVEL: 'silent', DATABASE_URL: database.url, ...options.env });
  const clock = new TestClock();
  const watched = watchClaims(database.unitOfWork);
  const wrapped = options.wrap?.(watched) ?? watched;
  const unitOfWork = options.recorder?.unitOfWork(wrapped) ?? wrapped;
  const reader = options.recorder?.reader(database.reader) ?? database.reader;
  const events = new EventBus();
  const log = new Log({ level: 'silent', format: 'json' });
  const clarifications = new Clarifications();
  new ClarificationPortAdapter(clarifications).onModuleInit();
  const access = new TaskAccess(reader);
  const lifetime = new CallerLifetime(new AccessTokensRepository(reader), clock, log, 50);
  const pendingActions = new PendingActions(clarifications, unitOfWork, clock);
  const waiters = new WaiterRegistry(events);
  const bundles = new BundleAccess(reader, access);
  const port = options.port ?? new ScriptedPort();
  const dispatches = new AnswerDispatch(unitOfWork, clock, port, clarifications, env, log);
  const delivery = new OutcomeDelivery(unitOfWork, clock, waiters, dispatches, clarifications, events, env, log);
  const dispatcher = new TurnDispatcher(unitOfWork, reader, clock, port, events, env, log);
  dispatchers.push(dispatcher);
  const phases = new ResponsePhases(log, new ResponseMetrics(new Metrics()), unitOfWork);
  const wait = new BundleWait(bundles, unitOfWork, reader, clock, waiters, delivery, events, env, log);
  return {
    env,
    clock,
    events,
    access,
    waiters,
    port,
    dispatches,
    delivery,
    dispatcher,
    pendingActions,
    workspaces: new Workspaces(unitOfWork, reader, clock),
    tasks: new Tasks(unitOfWork, reader, clock, access, pendingActions, events, env),
    sessions: new Sessions(
      unitOfWork,
      reader,
      clock,
      access,
      new AgentTokens(),
      clarifications,
      pendingActions,
      events,
      dispatcher,
      env,
    ),
    turns: new Turns(unitOfWork, reader, clock, access, clarifications, new ReservationBarrier(events, env), events),
    messages: new Messages(unitOfWork, reader, clock, access, clarifications, events),
    mailbox: new Mailbox(unitOfWork, reader, clock, access, lifetime, events, env),
    resolver: new ClarificationResolver(bundles, unitOfWork, reader, delivery, phases, env),
    requests: new ClarificationRequests(bundles, access, unitOfWork, reader, clock, clarifications, events),
    listing: new ClarificationListing(reader, clock),
    wait,
    restWait: new RestWait(wait, lifetime),
    recovery: new Recovery(
      unitOfWork,
      reader,
      clock,
      delivery,
      dispatches,
      clarifications,
      events,
      new RecoveryMetrics(new Metrics()),
      log,
    ),
  };
}
