import { randomBytes } from 'node:crypto';
import type { Actor, FuzzCase } from './cases.js';
import { MCP_HEADERS, PROTOCOL_VERSION, type PublishedTool, type Surface } from './mcp-cases.js';
import { Ref, type Whose } from './ref.js';
import type { Wire, WireReply, WireRequest } from './wire.js';

/** A user as the server knows them; without a token where authentication is off. */
export interface FuzzUser {
  readonly token?: string;
}

/** A task with a session, whose turn waits in the mailbox and has an open question; all made over REST. */
export interface Estate {
  readonly owner: 0 | 1;
  readonly workspaceId: string;
  readonly taskId: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly pendingId: string;
  readonly questionIds: readonly string[];
  agentToken: string;
}

/** A case as it was sent, and whom it concerned. */
export interface SentCase {
  readonly request: WireRequest;
  readonly estate: Estate;
  /** Undefined: nobody who may see anything. */
  readonly caller: Caller | undefined;
  /** The JSON-RPC id under which a tool was called. */
  readonly rpcId: number | undefined;
}

/** Index of the user, and of the agent its session. */
export interface Caller {
  readonly user: 0 | 1;
  readonly agentOf?: Estate;
}

const LIVING = 24;
const DELETED = 24;
const OPTIONS = ['left', 'right'];
const TERMINAL = new Set(['completed', 'failed', 'cancelled']);
const REST_HEADERS: readonly (readonly [string, string])[] = [['content-type', 'application/json']];

/** Everything that cases are about: kept alive, and made anew as they use it up. */
export class FuzzWorld {
  /** In the texts of one user, never to be seen by the other. */
  readonly canaries = [0, 1].map(() => `canary-${randomBytes(9).toString('hex')}`);
  /** What a client was told of an answer, by pending id. */
  readonly told = new Map<
    string,
    { readonly by: 'responder'; readonly status: number; readonly body: Record<string, unknown> }[]
  >();
  private readonly workspaces: string[] = [];
  private living: Estate[] = [];
  private deleted: Estate[] = [];
  private readonly removed = new WeakSet<Estate>();
  /** Whose estate an id is of. */
  private readonly homes = new Map<string, Estate>();
  private readonly mcpSessions = new Map<string, string>();
  private readonly cursors = new Map<string, string>();
  private made = 0;
  private rpcIds = 0;

  /** @param webhookUrl accepts every call */
  constructor(
    private readonly wire: Wire,
    private readonly users: readonly [FuzzUser, FuzzUser],
    private readonly webhookUrl: string,
  ) {}

  get isScoped(): boolean {
    return this.users[0].token !== undefined;
  }

  async settle(): Promise<void> {
    for (const user of this.users) {
      const workspace = await this.make('POST', '/workspaces', user.token, {
        name: `Of ${this.canaries[this.workspaces.length]}`,
      });
      this.workspaces.push(String(workspace['id']));
    }
    const estates = await Promise.all(Array.from({ length: 8 }, () => this.newEstate()));
    await Promise.all(estates.slice(0, 2).map((estate) => this.delete(estate)));
  }

  /** The tools that a surface lists. */
  async toolsOf(surface: Surface): Promise<PublishedTool[]> {
    const [estate] = this.living;
    if (estate === undefined) throw new Error('nobody is there yet');
    const { caller, token } = this.actorOf(surface === 'session' ? 'agent' : 'owner', estate);
    const scene = new Scene(estate, token, caller, surface);
    const session = await this.mcpSession(scene, 'own', false);
    const reply = await this.wire.send({
      method: 'POST',
      path: surface === 'session' ? `/mcp/sessions/${estate.sessionId}` : '/mcp',
      headers: [...this.headersFor(token), ...MCP_HEADERS, ['mcp-session-id', session]],
      body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })),
    });
    const text = reply.kind === 'reply' ? reply.body.toString('utf8') : reply.kind;
    const data = /^data: (\{.*)$/m.exec(text)?.[1];
    if (data === undefined) throw new Error(`no tools are listed: ${text}`);
    return (JSON.parse(data) as { result: { tools: PublishedTool[] } }).result.tools;
  }

  /** Whether an id is of something that the caller must not be told of. */
  isHidden(id: string, caller: Caller | undefined): boolean {
    const home = this.homes.get(id);
    const owner = home?.owner ?? this.workspaces.indexOf(id);
    if (owner === -1) return false;
    if (caller?.agentOf === undefined) return this.isScoped && caller?.user !== owner;
    return home !== undefined && home !== caller.agentOf;
  }

  /** What no reply to the caller may hold. */
  canariesFor(caller: Caller | undefined): readonly string[] {
    return this.isScoped ? this.canaries.filter((_, user) => user !== caller?.user) : [];
  }

  /** The case with everything put in that exists only in this run. */
  async prepare(fuzzCase: FuzzCase): Promise<SentCase> {
    const { isNew, index } = fuzzCase.estate;
    const estate =
      isNew || this.living.length === 0
        ? await this.newEstate()
        : (this.living[index % this.living.length] ?? (await this.newEstate()));
    const { caller, token } = this.actorOf(fuzzCase.actor, estate);
    const surface: Surface = fuzzCase.path[1] === 'sessions' ? 'session' : 'external';
    const scene = new Scene(estate, token, caller, surface);
    const path: string[] = [];
    for (const part of fuzzCase.path) path.push(part instanceof Ref ? await this.textOf(part, scene) : part);
    const headers: [string, string][] = [];
    const given = new Set(fuzzCase.headers.map(([name]) => name));
    if (!given.has('host')) headers.push(['host', new URL(this.wire.url).host]);
    if (!given.has('authorization') && token !== undefined) headers.push(['authorization', `Bearer ${token}`]);
    for (const [name, value] of fuzzCase.headers) {
      headers.push([name, value instanceof Ref ? await this.textOf(value, scene) : value]);
    }
    const body = await this.bodyOf(fuzzCase, scene);
    if (body !== undefined) {
      if (!given.has('content-type')) headers.push(...(REST_HEADERS as [string, string][]));
      headers.push(['content-length', String(body.length)]);
    }
    return {
      estate,
      caller,
      rpcId: scene.rpcId,
      request: {
        method: fuzzCase.method,
        path: `/${path.join('/')}${await this.queryOf(fuzzCase, scene)}`,
        headers,
        ...(body !== undefined && { body }),
        ...(fuzzCase.leavesAfterMs !== undefined && { leavesAfterMs: fuzzCase.leavesAfterMs }),
      },
    };
  }

  /** Takes note of what a case has changed. */
  learn({ request, caller }: SentCase, reply: WireReply): void {
    const { method, path } = request;
    const [of, id, ...rest] = path.replace(/^\/api\/v1\//, '').split(/[/?]/);
    const home = this.homes.get(id ?? '');
    const isRefused = reply.kind === 'reply' && reply.status >= 400;
    if (method === 'DELETE' && of === 'tasks' && home !== undefined && !isRefused) this.gone(home);
    if (reply.kind !== 'reply' || reply.status >= 300) {
      if (path.startsWith('/mcp') && (reply.kind !== 'reply' || reply.status === 404)) this.forgetMcp(request);
      return;
    }
    if (method === 'DELETE' && path.startsWith('/mcp')) this.forgetMcp(request);
    const body = jsonOf(reply.body);
    if (home !== undefined && rest[0] === 'agent-token') home.agentToken = String(body['agent_token']);
    if (home !== undefined && method === 'PATCH' && TERMINAL.has(String(body['state']))) this.retire(home);
    // Of one that was deleted meanwhile nothing is left to hold against what was told.
    if (home !== undefined && rest[0] === 'respond' && !this.removed.has(home)) {
      const told = this.told.get(home.pendingId) ?? [];
      if (told.length < 20) told.push({ by: 'responder', status: reply.status, body });
      this.told.set(home.pendingId, told);
    }
    const { next_cursor: next } = body;
    if (typeof next === 'string' && next !== '') this.cursors.set(`${caller?.user} ${path.split('?')[0]}`, next);
  }

  private actorOf(
    actor: Actor,
    estate: Estate,
  ): { readonly caller: Caller | undefined; readonly token: string | undefined } {
    const user = estate.owner;
    switch (actor) {
      case 'owner':
        return { caller: { user }, token: this.users[user].token };
      case 'other user':
        return { caller: { user: user === 0 ? 1 : 0 }, token: this.users[user === 0 ? 1 : 0].token };
      case 'agent':
        return { caller: { user, agentOf: estate }, token: estate.agentToken };
      case 'other agent': {
        const other = this.estateOf('other', estate);
        return { caller: { user: other.owner, agentOf: other }, token: other.agentToken };
      }
      case 'nobody':
        return { caller: undefined, token: undefined };
      case 'bad token':
        return { caller: undefined, token: `clu_${'x'.repeat(43)}` };
    }
  }

  private estateOf(whose: Whose, estate: Estate): Estate {
    switch (whose) {
      case 'own':
        return estate;
      case 'other':
        return this.living.find((each) => each.owner !== estate.owner) ?? estate;
      case 'sibling':
        return this.living.find((each) => each.owner === estate.owner && each !== estate) ?? estate;
      case 'deleted':
        return this.deleted.at(-1) ?? estate;
    }
  }

  private async textOf(ref: Ref, scene: Scene): Promise<string> {
    const value = await this.valueOf(ref, scene);
    return typeof value === 'string' ? value : String(value);
  }

  private async valueOf({ kind, whose, picks }: Ref, scene: Scene): Promise<unknown> {
    const estate = this.estateOf(whose, scene.estate);
    switch (kind) {
      case 'workspace':
        return estate.workspaceId;
      case 'task':
        return estate.taskId;
      case 'session':
        return estate.sessionId;
      case 'turn':
        return estate.turnId;
      case 'bundle':
        return estate.pendingId;
      case 'cursor':
        // Of whatever was listed last: of another list it is a position like any other.
        return [...this.cursors].findLast(([key]) => key.startsWith(`${scene.caller?.user} `))?.[1] ?? '';
      case 'answers':
        return estate.questionIds.map((id, index) => {
          const pick = picks[index % picks.length];
          const option = OPTIONS[pick?.option ?? 0];
          return {
            question_id: id,
            selected_options: option === undefined ? [] : [option],
            custom_text: pick?.text ?? '',
          };
        });
      case 'webhook':
        return this.webhookUrl;
      case 'mcp session':
        return this.mcpSession(scene, whose, false);
      case 'new mcp session':
        return this.mcpSession(scene, whose, true);
      case 'request id':
        // Never twice at once, or the second is refused.
        return (scene.rpcId = this.rpcIds += 1);
    }
  }

  private async filled(value: unknown, scene: Scene): Promise<unknown> {
    if (value instanceof Ref) return this.valueOf(value, scene);
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value as unknown[]) items.push(isLeaf(item) ? item : await this.filled(item, scene));
      return items;
    }
    if (isLeaf(value)) return value;
    const entries: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value as object)) entries.push([key, await this.filled(item, scene)]);
    return Object.fromEntries(entries);
  }

  private async bodyOf({ body }: FuzzCase, scene: Scene): Promise<Buffer | undefined> {
    if (body === undefined) return undefined;
    if ('json' in body) return Buffer.from(JSON.stringify(await this.filled(body.json, scene)) ?? '');
    return body.bytes(JSON.stringify(await this.filled(body.of, scene)) ?? '');
  }

  private async queryOf({ query }: FuzzCase, scene: Scene): Promise<string> {
    if (typeof query === 'string') return `?${query}`;
    if (query.length === 0) return '';
    const parameters = new URLSearchParams();
    for (const [name, value] of query) parameters.append(name, String(await this.filled(value, scene)));
    return `?${parameters.toString()}`;
  }

  /** An MCP session on the surface that the case is about: the caller's, or the other user's on `/mcp`. */
  private async mcpSession(scene: Scene, whose: Whose, isNew: boolean): Promise<string> {
    const isOwn = whose === 'own';
    const token = isOwn ? scene.token : this.users[scene.estate.owner === 0 ? 1 : 0].token;
    const path = isOwn && scene.surface === 'session' ? `/mcp/sessions/${scene.estate.sessionId}` : '/mcp';
    const key = `${path} ${token}`;
    const known = this.mcpSessions.get(key);
    if (known !== undefined && !isNew) return known;
    const reply = await this.wire.send({
      method: 'POST',
      path,
      headers: [...this.headersFor(token), ...MCP_HEADERS],
      body: Buffer.from(
        JSON.stringify({
          jsonrpc: '2.0',
          id: 0,
          method: 'initialize',
          params: { protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: { name: 'fuzz', version: '0' } },
        }),
      ),
    });
    const id = reply.kind === 'reply' ? reply.headers['mcp-session-id'] : undefined;
    if (typeof id !== 'string') return 'none';
    if (!isNew) this.mcpSessions.set(key, id);
    return id;
  }

  private forgetMcp({ headers }: WireRequest): void {
    const id = headers.find(([name]) => name === 'mcp-session-id')?.[1];
    for (const [key, known] of this.mcpSessions) if (known === id) this.mcpSessions.delete(key);
  }

  private headersFor(token: string | undefined): (readonly [string, string])[] {
    const host = ['host', new URL(this.wire.url).host] as const;
    return token === undefined ? [host] : [host, ['authorization', `Bearer ${token}`]];
  }

  private async newEstate(): Promise<Estate> {
    this.made += 1;
    const owner = this.made % 2 === 0 ? 0 : 1;
    const { token } = this.users[owner];
    const canary = this.canaries[owner] ?? '';
    const workspaceId = this.workspaces[owner] ?? '';
    const task = await this.make('POST', '/tasks', token, {
      title: `Task of ${canary}`,
      description: `For ${canary}`,
      workspace_id: workspaceId,
    });
    const resume = this.made % 5 === 0 ? { mode: 'webhook', url: this.webhookUrl } : { mode: 'pull' };
    const session = await this.make('POST', `/tasks/${String(task['id'])}/sessions`, token, { resume });
    const sessionId = String(session['id']);
    const turn = await this.make('POST', `/task-sessions/${sessionId}/turns`, token, { prompt: `Begin, ${canary}.` });
    const questionIds = this.made % 3 === 0 ? ['q1', 'q2'] : ['q1'];
    const asked = await this.make('POST', '/clarification/request', token, {
      session_id: sessionId,
      context: `Context of ${canary}`,
      questions: questionIds.map((id) => ({
        id,
        prompt: `Which, ${canary}?`,
        options: OPTIONS.map((option) => ({ option_id: option, label: `${option} of ${canary}` })),
      })),
    });
    const estate: Estate = {
      owner,
      workspaceId,
      taskId: String(task['id']),
      sessionId,
      turnId: String(turn['id']),
      pendingId: String(asked['pending_id']),
      questionIds,
      agentToken: String(session['agent_token']),
    };
    for (const id of idsOf(estate)) this.homes.set(id, estate);
    this.living = [...this.living.slice(-LIVING + 1), estate];
    return estate;
  }

  private async delete(estate: Estate): Promise<void> {
    await this.make('DELETE', `/tasks/${estate.taskId}`, this.users[estate.owner].token, undefined);
    this.gone(estate);
  }

  private gone(estate: Estate): void {
    this.retire(estate);
    this.removed.add(estate);
    this.told.delete(estate.pendingId);
    this.deleted = [...this.deleted.slice(-DELETED + 1), estate];
  }

  /** No longer one that cases should be about. */
  private retire(estate: Estate): void {
    this.living = this.living.filter((each) => each !== estate);
  }

  /** @throws when what the run is built on does not work */
  private async make(
    method: string,
    path: string,
    token: string | undefined,
    body: unknown,
  ): Promise<Record<string, unknown>> {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const reply = await this.wire.send({
      method,
      path: `/api/v1${path}`,
      headers: [
        ...this.headersFor(token),
        ...REST_HEADERS,
        ...(bytes === undefined ? [] : [['content-length', String(bytes.length)] as const]),
      ],
      ...(bytes !== undefined && { body: bytes }),
    });
    if (reply.kind !== 'reply' || reply.status >= 300) {
      const said = reply.kind === 'reply' ? `${reply.status} ${reply.body.toString().slice(0, 500)}` : reply.kind;
      throw new Error(`the world cannot be kept alive: ${method} ${path}: ${said}`);
    }
    return jsonOf(reply.body);
  }
}

/** What the references of one case are about. */
class Scene {
  rpcId: number | undefined;

  constructor(
    readonly estate: Estate,
    readonly token: string | undefined,
    readonly caller: Caller | undefined,
    readonly surface: Surface,
  ) {}
}

function idsOf({ taskId, sessionId, turnId, pendingId }: Estate): string[] {
  return [taskId, sessionId, turnId, pendingId];
}

function isLeaf(value: unknown): boolean {
  return typeof value !== 'object' || value === null;
}

function jsonOf(body: Buffer): Record<string, unknown> {
  try {
    const read: unknown = JSON.parse(body.toString('utf8'));
    return typeof read === 'object' && read !== null ? (read as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
