import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { ENV_VARIABLES } from '../../src/config/env.js';
import { nodesOf, ROOT, sourceFiles, textsIn } from '../architecture/source-files.js';

const shipped = sourceFiles('src', 'migrations');
/** A program of its own, which starts a server as anybody would and kills it from outside. */
const isDemo = (path: string): boolean => path.startsWith('src/demo/');

/** `path: what` of every name and text in code, comments left out. */
function namesAndTexts(pattern: RegExp): string[] {
  return shipped.flatMap((file) => {
    const names = nodesOf(file.syntax).flatMap((node) => (ts.isIdentifier(node) ? [node.text] : []));
    return [...new Set([...names, ...textsIn(file)])].filter((text) => pattern.test(text)).map(() => file.path);
  });
}

describe('KILL-SWITCH: what is shipped', () => {
  it('is the sources and migrations, of which none imports a test', () => {
    const build = JSON.parse(readFileSync(join(ROOT, 'tsconfig.build.json'), 'utf8')) as { include: unknown };
    const nest = JSON.parse(readFileSync(join(ROOT, 'nest-cli.json'), 'utf8')) as {
      compilerOptions: { builder: { options: { filenames: unknown } } };
    };
    expect(build.include).toEqual(['src', 'migrations']);
    expect(nest.compilerOptions.builder.options.filenames).toEqual(['src', 'migrations']);
    expect(shipped.filter(({ files }) => files.some((file) => file.startsWith('test/')))).toEqual([]);
    expect(shipped.filter(({ packages }) => packages.some((name) => /jest|testing/.test(name)))).toEqual([]);
  });

  it('has no word of crossings and crashes, and no setting for them', () => {
    const found = namesAndTexts(/crash|crossing|kill.?at|fault.?inject|sabotage/i);
    expect(found.filter((path) => !isDemo(path))).toEqual([]);
    expect(ENV_VARIABLES.filter((name) => /CRASH|KILL|DIE|FAULT|TEST/.test(name))).toEqual([]);
  });

  it('ends a process only where the server or a command ends, and kills only the one that the demo has started', () => {
    const ends = shipped.filter(({ syntax }) =>
      nodesOf(syntax).some(
        (node) => ts.isPropertyAccessExpression(node) && /^process\.(exit|abort|kill)$/.test(node.getText(syntax)),
      ),
    );
    expect(ends.map(({ path }) => path)).toEqual(['src/main.ts', 'src/persistence/persistence.module.ts']);
    expect(namesAndTexts(/SIGKILL/).filter((path) => !isDemo(path))).toEqual([]);
    expect(shipped.filter(({ path, files }) => !isDemo(path) && files.some(isDemo))).toEqual([]);
  });
});
