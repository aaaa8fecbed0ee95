import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import ts from 'typescript';
import { Metrics } from '../../src/observability/metrics.js';
import { nodesOf, ROOT, sourceFiles, textsIn } from '../architecture/source-files.js';
import { startApp } from '../support/app.js';
import { describeEngine } from '../support/engines.js';

const sources = sourceFiles('src');
const text = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');

/** The first cells of the table that follows the comment. */
function documented(what: string): string[] {
  const [, after = ''] = text.split(`<!-- ${what}: checked by`);
  const [section = ''] = after.split('\n## ');
  return [...section.matchAll(/^\| `([\w.]+)`/gm)].map(([, name = '']) => name);
}

/** Every event that is given to a log, with its level. */
function loggedEvents(): Map<string, string> {
  const calls = sources.flatMap(({ syntax }) => nodesOf(syntax)).filter((node) => ts.isCallExpression(node));
  return new Map(
    calls.flatMap(({ expression, arguments: [event] }) =>
      ts.isPropertyAccessExpression(expression) &&
      /(^|\.)log$/.test(expression.expression.getText()) &&
      /^(debug|info|warn|error)$/.test(expression.name.text) &&
      event !== undefined &&
      ts.isStringLiteral(event)
        ? [[event.text, expression.name.text]]
        : [],
    ),
  );
}

describeEngine('sqlite', 'docs/operations.md', (engine) => {
  it('OPERATIONS: says of every log record what it means and at which level it is, and of none that there is not', () => {
    const events = loggedEvents();
    expect(events.size).toBeGreaterThan(15);
    expect(documented('log events').sort()).toEqual([...events.keys()].sort());
    const levels = Object.fromEntries(
      [...text.matchAll(/^\| `([\w.]+)` *\| (debug|info|warn|error) /gm)].map(([, event = '', level]) => [
        event,
        level,
      ]),
    );
    for (const [event, level] of events) expect([event, levels[event]]).toEqual([event, level]);
  });

  it('OPERATIONS: says of every metric what it means, and of none that there is not', async () => {
    const app = await startApp({ url: await engine.createUrl() });
    try {
      const metrics = await app.app.get(Metrics).registry.getMetricsAsJSON();
      const own = metrics.map(({ name }) => name).filter((name) => !/^(process|nodejs)_/.test(name));
      expect(own.length).toBeGreaterThan(8);
      expect(documented('metrics').sort()).toEqual(own.sort());
    } finally {
      await app.close();
    }
  });

  it('OPERATIONS: says what to do about every reason for which a start fails', () => {
    const starts = sources.flatMap(({ syntax, path, ...rest }) =>
      nodesOf(syntax)
        .filter((node) => ts.isNewExpression(node))
        .filter(({ expression }) => expression.getText() === 'StartupError')
        .flatMap(({ arguments: [message] = [] as unknown as ts.NodeArray<ts.Expression> }) => {
          const [first = ''] = message === undefined ? [] : textsIn({ ...rest, path, syntax: message as never });
          // What follows is an explanation.
          return [first.split(/[;(]/)[0]?.trim() ?? ''];
        }),
    );
    expect(starts.length).toBeGreaterThan(6);
    expect(starts.filter((start) => start === '' || !text.includes(`\`${start}`))).toEqual([]);
  });
});
