import { describe, expect, it } from '@jest/globals';
import { join, relative } from 'node:path';
import ts from 'typescript';

const ROOT = join(import.meta.dirname, '../..');
const CLAIM = 'src/clarification/persistence/claim-bundle.tx.ts';
const RESOLVER = 'src/clarification/clarification-resolver.ts';

/** The product as the compiler reads it, types included. */
const program = ts.createProgram(sourceFiles(), compilerOptions());
const checker = program.getTypeChecker();
const sources = program.getSourceFiles().filter((file) => pathOf(file).startsWith('src/'));

function compilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
    config: unknown;
  };
  return ts.parseJsonConfigFileContent(config, ts.sys, ROOT).options;
}

function sourceFiles(): string[] {
  return ts.sys.readDirectory(join(ROOT, 'src'), ['.ts']);
}

function pathOf(node: ts.Node): string {
  return relative(ROOT, node.getSourceFile().fileName);
}

function nodesOf<T extends ts.Node>(is: (node: ts.Node) => node is T, among: readonly ts.Node[] = sources): T[] {
  const found: T[] = [];
  const visit = (node: ts.Node): void => {
    if (is(node)) found.push(node);
    ts.forEachChild(node, visit);
  };
  for (const node of among) visit(node);
  return found;
}

/** The files in which something declared under this name is used, its own file and re-exports left out. */
function usersOf(name: string): string[] {
  const files = nodesOf(ts.isIdentifier)
    .filter((node) => node.text === name && !isDeclarationName(node))
    .map(pathOf);
  return [...new Set(files)].sort();
}

function isDeclarationName(node: ts.Identifier): boolean {
  const { parent } = node;
  return (
    (ts.isFunctionDeclaration(parent) || ts.isMethodDeclaration(parent) || ts.isMethodSignature(parent)) &&
    parent.name === node
  );
}

function callsOf(name: string): ts.CallExpression[] {
  return nodesOf(ts.isCallExpression).filter(({ expression }) => {
    if (ts.isIdentifier(expression)) return expression.text === name;
    return ts.isPropertyAccessExpression(expression) && expression.name.text === name;
  });
}

/** Every text of the source, with what is inserted into templates as `…`. */
function textsOf(): { readonly path: string; readonly text: string }[] {
  const texts = nodesOf(
    (node): node is ts.StringLiteralLike | ts.TemplateExpression =>
      ts.isStringLiteralLike(node) || ts.isTemplateExpression(node),
  );
  return texts.map((node) => ({
    path: pathOf(node),
    text: ts.isTemplateExpression(node)
      ? [node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join('…')
      : node.text,
  }));
}

/** What `kind` a move can have, by its type: the literals of the union, or `string` when nothing narrows it. */
function kindsOf(change: ts.Type): string[] {
  const kind = change.getProperty('kind');
  if (kind === undefined) return ['no kind'];
  const type = checker.getTypeOfSymbol(kind);
  return (type.isUnion() ? type.types : [type])
    .map((member) => (member.isStringLiteral() ? member.value : checker.typeToString(member)))
    .sort();
}

function typeOfArgument(call: ts.CallExpression, index: number): ts.Type {
  const argument = call.arguments[index];
  if (argument === undefined) throw new Error(`${pathOf(call)} calls with fewer arguments`);
  return checker.getTypeAtLocation(argument);
}

function propertyType(type: ts.Type, name: string): ts.Type {
  const property = type.getProperty(name);
  if (property === undefined) throw new Error(`${checker.typeToString(type)} has no ${name}`);
  return checker.getTypeOfSymbol(property);
}

/** All the moves of rows to be written that a call of `changeRows` can carry. */
function kindsWrittenBy(call: ts.CallExpression): string[] {
  const item = checker.getIndexTypeOfType(typeOfArgument(call, 1), ts.IndexKind.Number);
  if (item === undefined) throw new Error(`${pathOf(call)} does not pass a list`);
  return kindsOf(propertyType(item, 'change'));
}

describe('P1: the source has one claim mechanism', () => {
  it('has one writer of question rows beside their creation and the claim’s private mark', () => {
    const writing = /\b(UPDATE|INSERT INTO|REPLACE INTO|MERGE INTO)\s+task_session_messages\b/i;
    const writers = textsOf()
      .filter(({ text }) => writing.test(text))
      .map(({ path, text }) => `${path}: ${/\bmetadata\b(?=\s*(=|,))/.test(text) ? 'metadata' : 'other columns'}`);
    expect(writers.sort()).toEqual([
      'src/clarification/persistence/bundles.repository.ts: metadata',
      `${CLAIM}: metadata`,
      'src/clarification/persistence/create-bundle.tx.ts: metadata',
      'src/clarification/persistence/note-superseded.tx.ts: other columns',
      'src/clarification/persistence/note-superseded.tx.ts: other columns',
      'src/tasks/persistence/messages.repository.ts: metadata',
      'src/tasks/persistence/messages.repository.ts: other columns',
      'src/tasks/persistence/messages.repository.ts: other columns',
    ]);
  });

  it('moves rows to answered or rejected in the claim and by no other call, by the types of what is passed', () => {
    const calls = callsOf('changeRows').map((call) => ({ path: pathOf(call), kinds: kindsWrittenBy(call) }));
    expect(calls.filter(({ path }) => path === CLAIM).map(({ kinds }) => kinds)).toEqual([
      expect.arrayContaining(['answered', 'rejected']),
    ]);
    const others = calls.filter(({ path }) => path !== CLAIM);
    expect(others.length).toBeGreaterThanOrEqual(4);
    const known = ['attached', 'cancelled', 'detached', 'expired', 'intent', 'restored', 'settled'];
    expect(others.flatMap(({ kinds }) => kinds).filter((kind) => !known.includes(kind))).toEqual([]);
    expect(usersOf('composeMetadata')).toEqual(['src/clarification/persistence/bundles.repository.ts', CLAIM]);
  });

  it('spells a resolved status in no SQL', () => {
    const inSql = textsOf().filter(
      ({ text }) => /\b(SELECT|UPDATE|INSERT|DELETE|VALUES)\b/.test(text) && /answered|rejected/.test(text),
    );
    expect(inSql).toEqual([]);
  });

  it('edits metadata inside the database for the claim’s private mark alone, which only the claim uses', () => {
    const editing = textsOf().filter(({ text }) => /\bjsonb?_(set|insert|replace|patch)\b|\|\|\s*'\{/.test(text));
    expect([...new Set(editing.map(({ path }) => path))]).toEqual(['src/persistence/dialect.ts']);
    expect(editing.every(({ text }) => text.includes('responding'))).toBe(true);
    expect(callsOf('metadataMarkedResponding').map(pathOf)).toEqual([CLAIM]);
  });
});

describe('P1: the source has one way to the claim', () => {
  it('only the resolver reaches it', () => {
    expect(usersOf('claimBundle')).toEqual([RESOLVER]);
    expect(importersOf(CLAIM)).toEqual(
      [
        // For the type of what was claimed.
        'src/clarification/delivery/answer-dispatch.ts',
        'src/clarification/delivery/outcome-delivery.ts',
        RESOLVER,
        'src/clarification/persistence/claimed-rows.ts',
        'src/clarification/persistence/dispatch-answer.tx.ts',
        'src/clarification/persistence/finalize-delivery.tx.ts',
      ].sort(),
    );
    expect(importersOf(CLAIM, { values: true })).toEqual([RESOLVER]);
  });

  it('REST and MCP call the resolver, one place each, and nobody else does', () => {
    expect(callsOf('resolveBundle').map(pathOf).sort()).toEqual([
      'src/clarification/http/clarification.controller.ts',
      'src/mcp/tools/answer-question.tool.ts',
    ]);
    expect(importersOf(RESOLVER, { values: true })).toEqual([
      'src/clarification/clarification.module.ts',
      'src/clarification/http/clarification.controller.ts',
      'src/mcp/mcp.module.ts',
    ]);
  });

  it('neither surface imports what moves rows', () => {
    const surfaces = sources.filter((file) => /^src\/(mcp|http|cli|demo)\/|\/http\//.test(pathOf(file)));
    const reaching = surfaces.flatMap((file) =>
      importsOf(file)
        .filter(({ path }) => /\.tx\.ts$|clarification\/persistence\//.test(path))
        .map(({ path }) => `${pathOf(file)} → ${path}`),
    );
    expect(surfaces.length).toBeGreaterThan(20);
    expect(reaching).toEqual([]);
  });
});

function importsOf(file: ts.SourceFile): { readonly path: string; readonly values: boolean }[] {
  return nodesOf(ts.isImportDeclaration, [file]).flatMap((declaration) => {
    const symbol = checker.getSymbolAtLocation(declaration.moduleSpecifier);
    const target = symbol?.declarations?.[0];
    if (target === undefined || !ts.isSourceFile(target)) return [];
    const clause = declaration.importClause;
    const bindings = clause?.namedBindings;
    const values =
      clause === undefined ||
      (!clause.isTypeOnly &&
        (bindings === undefined || ts.isNamespaceImport(bindings) || bindings.elements.some((one) => !one.isTypeOnly)));
    return [{ path: pathOf(target), values }];
  });
}

function importersOf(path: string, options: { readonly values?: true } = {}): string[] {
  return sources
    .filter((file) => importsOf(file).some((one) => one.path === path && (one.values || options.values !== true)))
    .map(pathOf)
    .sort();
}
