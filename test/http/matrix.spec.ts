import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ContractedRoutes } from '../../src/http/contracted-routes.js';
import { startApp, type RunningApp } from '../support/app.js';
import { McpCaller, RestCaller, type Heard } from '../support/callers.js';
import { describeEachEngine, type TestDatabase } from '../support/engines.js';
import { makeEstate, type Estate } from '../support/estate.js';
import { EventClient } from '../support/event-client.js';
import {
  CALLERS,
  ROUTES,
  TOOLS,
  type CallerName,
  type RouteRow,
  type ToolRow,
  type Verdict,
  type Verdicts,
} from './matrix.js';
import { dumpOf } from '../support/dump.js';

interface Town {
  readonly app: RunningApp;
  readonly tokens: { readonly owner: string; readonly other: string; readonly otherAgent: string };
  readonly owner: RestCaller;
}

const isSuccess = (verdict: Verdict): boolean => verdict === 'ok' || verdict.startsWith('2');
/** A wait that times out has been a wait. */
const isTurnedAway = (verdict: Verdict): boolean => !isSuccess(verdict) && verdict !== '504 wait_timeout';

describeEachEngine('AUTH, ACCESS, AGENT: the identity matrix', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await engine.createDatabase();
  });

  for (const authMode of ['enforced', 'disabled'] as const) {
    describe(`with authentication ${authMode}`, () => {
      let town: Town;
      beforeAll(async () => {
        town = await settle(await startApp(database, { authMode }));
      });
      afterAll(() => town.app.close());

      it('has a row for every route of the application and for no other', () => {
        const routes = town.app.app.get(ContractedRoutes).all();
        const known = new Set(ROUTES.map(({ route }) => route.replace(/ \(.*\)$/, '')));
        expect([...known].sort()).toEqual(routes.map(({ method, path }) => `${method.toUpperCase()} ${path}`).sort());
      });

      it('MCP-SURFACES: has a row for every tool of each surface and for no other', async () => {
        const { sessionId, agentToken } = await makeEstate(town.owner);
        const surfaces = {
          external: await McpCaller.open(town.app.url, '/mcp', town.tokens.owner),
          session: await McpCaller.open(town.app.url, `/mcp/sessions/${sessionId}`, agentToken),
        };
        for (const surface of ['external', 'session'] as const) {
          const tools = (await surfaces[surface].tools()).map(({ name }) => name);
          const rows = TOOLS.filter((row) => row.surface === surface).map(({ tool }) => tool);
          expect(rows.sort()).toEqual(tools.sort());
        }
      });

      // `noToken` and `unscoped` are the same request in the two modes.
      const callers = CALLERS.filter((name) => name !== (authMode === 'enforced' ? 'unscoped' : 'noToken'));

      it.each(ROUTES.map((row) => [row.route, row] as const))('%s', async (_, row) => {
        const verdicts = { ...row.verdicts, ...(authMode === 'disabled' && row.whileOff) };
        const seen = await eachCaller(callers, verdicts, town, async (name, estate) =>
          visit(row, name, await arrange(row, estate, town.owner), town),
        );
        expect(seen).toEqual(Object.fromEntries(callers.map((name) => [name, verdicts[name]])));
      });

      it.each(TOOLS.map((row) => [row.tool, row] as const))('%s', async (_, row) => {
        const seen = await eachCaller(callers, row.verdicts, town, (name, estate) => use(row, name, estate, town));
        expect(seen).toEqual(Object.fromEntries(callers.map((name) => [name, row.verdicts[name]])));
      });

      it('N8c: whoever is turned away has changed nothing', async () => {
        const estate = await makeEstate(town.owner);
        const before = await dumpOf(database);
        for (const row of ROUTES) {
          const verdicts = { ...row.verdicts, ...(authMode === 'disabled' && row.whileOff) };
          for (const name of callers.filter((one) => isTurnedAway(verdicts[one]))) {
            await visit(row, name, estate, town);
          }
        }
        for (const row of TOOLS) {
          for (const name of callers.filter((one) => isTurnedAway(row.verdicts[one])))
            await use(row, name, estate, town);
        }
        expect(await dumpOf(database)).toEqual(before);
      });
    });
  }
});

async function settle(app: RunningApp): Promise<Town> {
  const [owner, other] = [await app.createUser(), await app.createUser()];
  const elsewhere = await makeEstate(new RestCaller(app.url, other.token));
  return {
    app,
    tokens: { owner: owner.token, other: other.token, otherAgent: elsewhere.agentToken },
    owner: new RestCaller(app.url, owner.token),
  };
}

/** Those who will be turned away share an estate; each of the others gets one of its own, which it may change. */
async function eachCaller(
  callers: readonly CallerName[],
  verdicts: Verdicts,
  town: Town,
  call: (name: CallerName, estate: Estate) => Promise<Verdict>,
): Promise<Record<string, Verdict>> {
  const shared = makeEstate(town.owner);
  const seen = await Promise.all(
    callers.map(async (name) => {
      const estate = isTurnedAway(verdicts[name]) ? shared : makeEstate(town.owner);
      return [name, await call(name, await estate)] as const;
    }),
  );
  return Object.fromEntries(seen);
}

function tokenOf(name: CallerName, estate: Estate, { tokens }: Town): string | undefined {
  switch (name) {
    case 'noToken':
    case 'unscoped':
      return undefined;
    case 'ownAgent':
      return estate.agentToken;
    default:
      return tokens[name];
  }
}

async function arrange(row: RouteRow, estate: Estate, owner: RestCaller): Promise<Estate> {
  if (row.before === undefined) return estate;
  const { path, body } = row.before.call(estate);
  const made = await owner.make(row.before.method, path, body);
  return { ...estate, [row.before.gives]: made.id };
}

async function visit(row: RouteRow, name: CallerName, estate: Estate, town: Town): Promise<Verdict> {
  const [method = ''] = row.route.split(' ');
  const { path, body } = row.call(estate);
  const token = tokenOf(name, estate, town);
  if (row.streams === true) return openStream(town.app.url, path, token);
  const answer = await (path.startsWith('/mcp')
    ? mcpRequest(town.app.url, method, path, body, token)
    : new RestCaller(town.app.url, token).send(method, path, body));
  assertShown(row, name, estate, answer.text);
  const code = path.startsWith('/mcp') && answer.status === 400 ? undefined : answer.json?.code;
  return typeof code === 'string' ? `${answer.status} ${code}` : String(answer.status);
}

async function openStream(url: string, path: string, token: string | undefined): Promise<Verdict> {
  const stream = await EventClient.open(url, { path, ...(token !== undefined && { token }) });
  if (stream.isStream) {
    await stream.close();
    return String(stream.status);
  }
  await stream.end();
  return `${stream.status} ${(JSON.parse(stream.body) as { code: string }).code}`;
}

async function mcpRequest(
  url: string,
  method: string,
  path: string,
  body: unknown,
  token: string | undefined,
): Promise<Heard> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = text.startsWith('{') ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, text, json };
}

async function use(row: ToolRow, name: CallerName, estate: Estate, town: Town): Promise<Verdict> {
  const path = row.surface === 'external' ? '/mcp' : `/mcp/sessions/${estate.sessionId}`;
  const token = tokenOf(name, estate, town);
  let mcp: McpCaller;
  try {
    mcp = await McpCaller.open(town.app.url, path, token);
  } catch (error) {
    const [, status, body] = /did not initialize: (\d+) (.*)$/s.exec((error as Error).message) ?? [];
    return `${status} ${(JSON.parse(body ?? '{}') as { code?: string }).code}`;
  }
  const result = await mcp.call(row.tool, row.args(estate));
  assertShown(row, name, estate, result.text);
  return result.isError ? result.text.slice(0, result.text.indexOf(':')) : 'ok';
}

/** A foreigner reads nothing of the estate; a list shows its readers what they may see. */
function assertShown(row: RouteRow | ToolRow, name: CallerName, estate: Estate, text: string): void {
  const mayRead = name === 'owner' || name === 'unscoped' || name === 'ownAgent';
  if (!mayRead) {
    for (const id of Object.values(estate)) expect(text).not.toContain(id);
  } else if (row.shows !== undefined && isSuccess(row.verdicts[name])) {
    expect(text).toContain(estate[row.shows]);
  }
}
