import { describe, expect, it } from '@jest/globals';
import { dirname } from 'node:path';
import ts from 'typescript';
import { cyclesIn, nodesOf, sourceFiles, textsIn } from './source-files.js';
import type { SourceFile } from './source-files.js';

const sources = sourceFiles('src', 'migrations');

/** What each folder below `src` may import, besides itself; `.` are the files that put everything together. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  common: [],
  events: [],
  config: ['common'],
  observability: ['config'],
  persistence: ['common', 'config', 'migrations', 'observability'],
  identity: ['common', 'config', 'observability', 'persistence'],
  http: ['common', 'config', 'identity', 'observability'],
  health: ['common', 'config', 'http', 'observability', 'persistence'],
  tasks: ['common', 'config', 'events', 'http', 'identity', 'observability', 'persistence'],
  clarification: ['common', 'config', 'events', 'http', 'identity', 'observability', 'persistence', 'tasks'],
  stream: ['common', 'events', 'http', 'identity', 'observability', 'persistence', 'tasks'],
  mcp: ['clarification', 'common', 'config', 'http', 'identity', 'observability', 'tasks'],
  cli: ['clarification', 'common', 'config', 'identity', 'persistence'],
  demo: ['clarification', 'config', 'tasks'],
  migrations: [],
  '.': [
    'clarification',
    'cli',
    'common',
    'config',
    'health',
    'http',
    'identity',
    'mcp',
    'observability',
    'persistence',
    'stream',
    'tasks',
  ],
};

const featureOf = (path: string) =>
  path.startsWith('src/') ? (/^src\/([^/]+)\//.exec(path)?.[1] ?? '.') : dirname(path);
const isWiring = (path: string) => /(^src\/app\.\w+|\.module)\.ts$/.test(path);
const layerOf = (path: string) => /^src\/\w+\/(domain|http|persistence|sdk)\//.exec(path)?.[1];

/** `from → to` of every import for which the rule does not hold. */
function against(rule: (from: SourceFile, to: string) => boolean, among = sources): string[] {
  return among.flatMap((from) => from.files.filter((to) => !rule(from, to)).map((to) => `${from.path} → ${to}`));
}

function usersOf(...packages: readonly string[]): string[] {
  return sources.filter((file) => file.packages.some((each) => packages.includes(each))).map(({ path }) => path);
}

function graphOf(nodeOf: (path: string) => string | undefined, among = sources): Map<string, Set<string>> {
  const edges = new Map<string, Set<string>>();
  for (const { path, files } of among) {
    const from = nodeOf(path);
    if (from === undefined) continue;
    const targets = edges.get(from) ?? new Set();
    for (const file of files) {
      const to = nodeOf(file);
      if (to !== undefined && to !== from) targets.add(to);
    }
    edges.set(from, targets);
  }
  return edges;
}

describe('dependencies point inwards', () => {
  it('between the folders of src, as the table says and as ARCHITECTURE.md draws it', () => {
    expect(
      against(
        ({ path }, to) =>
          featureOf(to) === featureOf(path) || MAY_IMPORT[featureOf(path)]?.includes(featureOf(to)) === true,
      ),
    ).toEqual([]);
  });

  it('and the table allows nothing that is not used, and no folder is missing in it', () => {
    const used = graphOf(featureOf);
    expect(Object.fromEntries([...used].map(([from, to]) => [from, [...to].sort()]))).toEqual(
      Object.fromEntries(Object.entries(MAY_IMPORT).map(([from, to]) => [from, [...to].sort()])),
    );
  });

  it('so that neither features, nor files, nor the folders of one feature go round', () => {
    expect(cyclesIn(graphOf(featureOf))).toEqual([]);
    expect(cyclesIn(graphOf((path) => path))).toEqual([]);
    const wired = sources.filter(({ path }) => !isWiring(path));
    for (const feature of Object.keys(MAY_IMPORT)) {
      // What stands in the feature's own folder is shared by its folders, or puts them together.
      const folders = graphOf((path) => new RegExp(`^src/${feature}/(\\w+)/`).exec(path)?.[1], wired);
      expect([feature, cyclesIn(folders)]).toEqual([feature, []]);
    }
  });

  it('from a domain to common and other domains only, and to no framework', () => {
    const domains = sources.filter(({ path }) => layerOf(path) === 'domain');
    expect(domains.length).toBeGreaterThan(10);
    expect(against((_, to) => layerOf(to) === 'domain' || featureOf(to) === 'common', domains)).toEqual([]);
    expect(domains.filter(({ packages }) => packages.length > 0).map(({ path }) => path)).toEqual([]);
  });

  it("to a feature's http folder from nowhere but its own module", () => {
    const isInside = (path: string, to: string) => dirname(path) === dirname(to);
    const isOwnModule = (path: string, to: string) => isWiring(path) && featureOf(path) === featureOf(to);
    expect(against(({ path }, to) => layerOf(to) !== 'http' || isInside(path, to) || isOwnModule(path, to))).toEqual(
      [],
    );
  });

  it('never from common to Nest, nor by a reference that looks ahead', () => {
    expect(usersOf('@nestjs/common', '@nestjs/core', 'express').filter((path) => featureOf(path) === 'common')).toEqual(
      [],
    );
    expect(filesWith((node) => ts.isIdentifier(node) && node.text === 'forwardRef')).toEqual([]);
  });
});

describe('each outside thing has one room', () => {
  it('databases: persistence folders and migrations', () => {
    const users = usersOf('typeorm', 'pg', 'sqlite3');
    expect(users.length).toBeGreaterThan(10);
    expect(users.filter((path) => !isPersistence(path))).toEqual([]);
  });

  it('SQL: persistence folders and migrations', () => {
    const statement =
      /^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|BEGIN|COMMIT|ROLLBACK|PRAGMA|LOCK|ALTER|CREATE|DROP)\b.*/;
    const users = sources.filter((file) => textsIn(file).some((text) => statement.test(text)));
    expect(users.length).toBeGreaterThan(20);
    expect(users.map(({ path }) => path).filter((path) => !isPersistence(path))).toEqual([]);
  });

  it('the MCP SDK: its adapter, and the demo, which is a client', () => {
    const users = usersOf('@modelcontextprotocol/sdk');
    expect(new Set(users.map((path) => dirname(path)))).toEqual(new Set(['src/mcp/sdk', 'src/demo']));
  });

  it('the environment: src/config/env.ts', () => {
    const reads = (node: ts.Node) =>
      ts.isPropertyAccessExpression(node) && node.name.text === 'env' && node.expression.getText() === 'process';
    expect(filesWith(reads)).toEqual(['src/config/env.ts']);
  });
});

function isPersistence(path: string): boolean {
  return /^(migrations|src\/(\w+\/)?persistence)\//.test(path);
}

function filesWith(is: (node: ts.Node) => boolean): string[] {
  return sources.filter(({ syntax }) => nodesOf(syntax).some(is)).map(({ path }) => path);
}
