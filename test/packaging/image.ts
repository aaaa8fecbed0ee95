import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DockerfileParser } from 'dockerfile-ast';
import { ROOT } from '../architecture/source-files.js';

export const DOCKERFILE = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');

/** The instructions of one stage, in order, e.g. `{name: 'COPY', text: '. .'}`. */
export type Stage = readonly { readonly name: string; readonly text: string }[];

const instructions = DockerfileParser.parse(DOCKERFILE)
  .getInstructions()
  .map((each) => ({ name: each.getKeyword(), text: each.getArgumentsContent() ?? '' }));
const starts = instructions.flatMap(({ name }, index) => (name === 'FROM' ? [index] : []));

/** One for each FROM, with it. */
export const STAGES: readonly Stage[] = starts.map((start, index) => instructions.slice(start, starts[index + 1]));

/** What a stage says by an instruction that stands in it once. */
export function textOf(stage: Stage | undefined, name: string): string {
  const found = stage?.filter((each) => each.name === name) ?? [];
  if (found.length !== 1) throw new Error(`${name} stands ${found.length} times`);
  return found[0]?.text ?? '';
}

/** The settings that the image brings. */
export function imageSettings(): Record<string, string> {
  const [last] = DockerfileParser.parse(DOCKERFILE).getENVs().slice(-1);
  return Object.fromEntries((last?.getProperties() ?? []).map((each) => [each.getName(), each.getValue() ?? '']));
}
