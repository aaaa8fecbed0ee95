import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';

export const ROOT = join(import.meta.dirname, '../..');

export interface SourceFile {
  /** From the root, e.g. `src/tasks/page.ts`. */
  readonly path: string;
  readonly syntax: ts.SourceFile;
  /** Files of ours that it imports or exports from, types too. */
  readonly files: readonly string[];
  /** Packages that it imports, e.g. `typeorm`, `@nestjs/common`, `node:fs`; no path inside them. */
  readonly packages: readonly string[];
}

/** Every TypeScript file below these folders. */
export function sourceFiles(...folders: readonly string[]): SourceFile[] {
  return sourcePaths(...folders).map(readSource);
}

export function sourcePaths(...folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join(folder, path))
      .sort(),
  );
}

function readSource(path: string): SourceFile {
  const syntax = ts.createSourceFile(path, readFileSync(join(ROOT, path), 'utf8'), ts.ScriptTarget.ES2023, true);
  const specifiers = specifiersOf(syntax);
  return {
    path,
    syntax,
    files: specifiers
      .filter((specifier) => specifier.startsWith('.'))
      .map((specifier) => normalize(join(dirname(path), specifier)).replace(/\.js$/, '.ts')),
    packages: specifiers
      .filter((specifier) => !specifier.startsWith('.'))
      .map((specifier) => /^(@[^/]+\/[^/]+|[^/]+)/.exec(specifier)?.[0] ?? specifier),
  };
}

function specifiersOf(syntax: ts.SourceFile): string[] {
  return nodesOf(syntax).flatMap((node) => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined) {
      return [(node.moduleSpecifier as ts.StringLiteral).text];
    }
    const isImport = ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
    const [target] = isImport ? node.arguments : [];
    return target !== undefined && ts.isStringLiteralLike(target) ? [target.text] : [];
  });
}

/** The node and everything in it. */
export function nodesOf(node: ts.Node): ts.Node[] {
  const found: ts.Node[] = [];
  const visit = (each: ts.Node): void => {
    found.push(each);
    ts.forEachChild(each, visit);
  };
  visit(node);
  return found;
}

/** The literal texts in a file; what is inserted into a template is `…`. */
export function textsIn({ syntax }: SourceFile): string[] {
  return nodesOf(syntax).flatMap((node) => {
    if (ts.isStringLiteralLike(node)) return [node.text];
    if (!ts.isTemplateExpression(node)) return [];
    return [[node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join('…')];
  });
}

/** Groups of two or more nodes of which each leads to each; empty when nothing goes round. */
export function cyclesIn(edges: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const reach = (from: string): Set<string> => {
    const seen = new Set<string>();
    const open = [from];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      for (const next of edges.get(node) ?? []) {
        if (!seen.has(next)) open.push(next);
        seen.add(next);
      }
    }
    return seen;
  };
  const reached = new Map([...edges.keys()].map((node) => [node, reach(node)]));
  const groups = new Map<string, string[]>();
  for (const [node, from] of reached) {
    const group = [...from].filter((other) => reached.get(other)?.has(node) === true).sort();
    if (group.length > 1) groups.set(group.join(), group);
  }
  return [...groups.values()];
}
