import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import express, { type Response } from 'express';
import { connectBare } from '../lib/bare-connections.js';
import type { BareBundle, BareInstructions } from '../lib/bare-plan.js';
import type { Json } from '../lib/http-client.js';
import { fillIn, type PlannedStatement } from '../lib/recording.js';

// The least that could take the same answers: Express, its JSON parser, and the statements that the product was recorded
// to send, on the same driver in the same transactions. Argument: a file of BareInstructions.

const instructions = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as BareInstructions;
const connections = await connectBare(instructions);
const bundles = new Map<string, BareBundle>();
const waiting = new Map<string, Response>();

async function replay(bundle: BareBundle, statements: readonly PlannedStatement[]): Promise<void> {
  const now = new Date().toISOString();
  const fresh: string[] = [];
  const freshId = (index: number): string => (fresh[index] ??= randomUUID());
  const sent: Promise<void>[] = [];
  for (const statement of statements) {
    // What the product had not waited for is not waited for here.
    for (const [index, earlier] of sent.entries()) if (!statement.overlaps.includes(index)) await earlier;
    const values = statement.values === null ? null : fillIn(statement.values, bundle.ids, freshId, now);
    sent.push(connections.send(statement, values));
  }
  await Promise.all(sent);
}

function replyFor(bundle: BareBundle, reply: Json): Json {
  return JSON.parse(JSON.stringify(reply).replaceAll('{pending}', bundle.pendingId));
}

const app = express();
app.disable('x-powered-by').disable('etag');
app.use(express.json({ limit: '64mb' }));

app.post('/bundles', (request, response) => {
  for (const bundle of request.body as BareBundle[]) bundles.set(bundle.pendingId, bundle);
  response.json({});
});

app.get('/api/v1/clarification/:id/wait', (request, response) => {
  waiting.set(request.params.id, response);
});

app.post('/api/v1/clarification/:id/respond', async (request, response) => {
  const bundle = bundles.get(request.params.id);
  const plan = bundle && instructions.plans[bundle.kind];
  if (bundle === undefined || plan === undefined) {
    response.status(404).json({});
    return;
  }
  await replay(bundle, plan.statements);
  waiting.get(bundle.pendingId)?.json(replyFor(bundle, plan.waited));
  waiting.delete(bundle.pendingId);
  response.json(replyFor(bundle, plan.reply));
});

const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`listens on http://127.0.0.1:${(server.address() as AddressInfo).port}, bare\n`);
});
