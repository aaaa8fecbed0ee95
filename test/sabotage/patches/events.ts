import type { Patch } from '../patch.js';

const envelope = 'src/stream/envelope.ts';
const feed = 'src/stream/event-feed.ts';
const stream = 'src/stream/event-stream.ts';
const streams = 'src/stream/event-streams.ts';
const buffer = 'src/stream/replay-buffer.ts';
const told = 'test/stream/events.spec.ts';
const whoHears = 'test/stream/who-hears.spec.ts';
const replay = 'test/stream/replay.spec.ts';
const connections = 'test/stream/connections.spec.ts';

/** What is told of what happens, and to whom. */
export const EVENTS: readonly Patch[] = [
  {
    rule: 'EVENTS',
    says: 'A resolution is told before it is handed over.',
    file: 'src/clarification/delivery/outcome-delivery.ts',
    find: 'const settled = await this.settle(job);',
    replace: 'this.events.publish([resolved(bundle, by)]);\n    const settled = await this.settle(job);',
    spec: told,
    title: 'and not before',
  },
  {
    rule: 'EVENTS',
    says: 'It is not told who answered.',
    file: 'src/stream/event-text.ts',
    find: 'actor: event.actor,',
    replace: '',
    spec: told,
  },
  {
    rule: 'EVENTS',
    says: 'A look is over a moment after it has looked around for the last time.',
    file: feed,
    find: '    this.looking = undefined;',
    replace: '    await Promise.resolve();\n    this.looking = undefined;',
    spec: told,
    title: 'whichever moment',
  },
  {
    rule: 'EVENTS-REVISION',
    says: 'What could not be read is told as nothing to wait for.',
    file: feed,
    find: 'pendingAction: pending && pendingAction(pending.ofSession(event.sessionId)),',
    replace: 'pendingAction: pendingAction(pending?.ofSession(event.sessionId) ?? false),',
    spec: told,
  },
  {
    rule: 'EVENTS-REVISION',
    says: 'Events count their looks by themselves.',
    file: feed,
    find: 'const revision = this.pendingActions.nextRevision();',
    replace: 'const revision = { epoch: this.epoch, sequence: this.buffer.position };',
    spec: told,
    title: 'the later look the higher',
  },
  {
    rule: 'EVENTS-WHO',
    says: 'Users hear of every task.',
    file: envelope,
    find: "home !== 'missing' && isVisibleHome(caller, home) ?",
    replace: "home !== 'missing' ?",
    spec: whoHears,
  },
  {
    rule: 'EVENTS-WHO',
    says: 'An agent hears of every session.',
    file: envelope,
    find: 'event.sessionId === caller.sessionId ?',
    replace: "event.sessionId !== '' ?",
    spec: whoHears,
  },
  {
    rule: 'EVENTS-WHO',
    says: 'Where it is not known whose task it is, everybody hears of it.',
    file: envelope,
    find: "return 'resync';",
    replace: "return 'event';",
    spec: told,
  },
  {
    rule: 'EVENTS-REPLAY',
    says: 'Of what has left the buffer the rest is told as if it were all.',
    file: buffer,
    find: 'position >= this.newest - this.capacity',
    replace: 'position >= 0',
    spec: replay,
  },
  {
    rule: 'EVENTS-REPLAY',
    says: 'An id of another start is taken for one of this.',
    file: feed,
    find: 'Number(epoch) === this.epoch && ',
    replace: 'epoch !== undefined && ',
    spec: replay,
  },
  {
    rule: 'EVENTS-OPEN',
    says: 'A stream outlives its token.',
    file: streams,
    find: '() => stream.end());\n    response.once',
    replace: '() => undefined);\n    response.once',
    spec: connections,
    title: 'a stream ends when its token',
  },
  {
    rule: 'EVENTS-OPEN',
    says: 'A client that takes nothing is waited for.',
    file: stream,
    find: 'if (this.stalledFor >= patience)',
    replace: 'if (this.stalledFor < 0)',
    spec: connections,
    title: 'for several heartbeats',
  },
  {
    rule: 'EVENTS-OPEN',
    says: 'A client that is behind the buffer is told to look again, although it does not read.',
    file: stream,
    find: 'if (!this.isWritable) return this.giveUp();',
    replace: '',
    spec: connections,
    title: 'is dropped once',
  },
  {
    rule: 'EVENTS-OPEN',
    says: 'A client is dropped because the server was slow.',
    file: stream,
    find: 'if (!this.isWritable) return this.giveUp();',
    replace: 'return this.giveUp();',
    spec: connections,
    title: 'and stays',
  },
  {
    rule: 'EVENTS-OPEN',
    says: 'Proxies may keep the stream.',
    file: streams,
    find: "      'X-Accel-Buffering': 'no',\n",
    replace: '',
    spec: connections,
  },
];
