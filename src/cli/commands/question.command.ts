import { Option } from 'commander';
import type { Command } from 'commander';
import { Type } from 'typebox';
import type { Static } from 'typebox';
import type { CliContext } from '../cli-context.js';
import { RestClient } from '../rest-client.js';
import { terminalLine, terminalText } from '../terminal-text.js';
import { toRespondBody } from './answer-options.js';
import type { AnswerOptions } from './answer-options.js';

const BUNDLE = Type.Object({
  pending_id: Type.String(),
  task_id: Type.String(),
  age_seconds: Type.Integer(),
  context: Type.String(),
  questions: Type.Array(
    Type.Object({
      question_id: Type.String(),
      title: Type.String(),
      prompt: Type.String(),
      status: Type.String(),
      options: Type.Array(Type.Object({ option_id: Type.String(), label: Type.String(), description: Type.String() })),
    }),
  ),
});
const PAGE = Type.Object({ bundles: Type.Array(BUNDLE), count: Type.Integer(), next_cursor: Type.String() });
const RESOLUTION = Type.Object({
  claimed: Type.Boolean(),
  delivered: Type.Boolean(),
  status: Type.Union([Type.Literal('answered'), Type.Literal('rejected')]),
  response: Type.Object({
    answers: Type.Array(
      Type.Object({
        question_id: Type.String(),
        selected_options: Type.Array(Type.String()),
        custom_text: Type.String(),
      }),
    ),
  }),
});

type Bundle = Static<typeof BUNDLE>;
type Resolution = Static<typeof RESOLUTION>;

interface ServerOptions {
  readonly url?: string;
  readonly json?: true;
}

/** `question list` and `question answer`: as anybody would over REST, with nothing but a token. */
export function addQuestionCommand(program: Command, context: CliContext): void {
  const question = program.command('question').description('see and answer what is waiting in the running server');
  const client = ({ url }: ServerOptions): RestClient => {
    const server = context.server();
    return new RestClient({ ...server, url: url ?? server.url });
  };
  const url = () => new Option('--url <url>', 'the server (default: CLARION_URL, else the configured HOST and PORT)');

  question
    .command('list')
    .description('list the open questions that CLARION_TOKEN may see, oldest first')
    .option('--workspace <id>', 'only this workspace')
    .addOption(url())
    .option('--json', 'print JSON, as GET /api/v1/clarification gives it')
    .action(async (options: ServerOptions & { workspace?: string }) => {
      const bundles = await listBundles(client(options), options.workspace);
      if (options.json) context.print(JSON.stringify({ bundles, count: bundles.length, next_cursor: '' }, null, 2));
      else context.print(bundles.length === 0 ? 'no open questions' : bundles.map(describeBundle).join('\n\n'));
    });

  question
    .command('answer')
    .description('answer or decline an open question, or learn what somebody else answered before')
    .argument('<pending-id>')
    .option('--select <question=option,...>', 'choose options; repeat for further questions', collect, [])
    .option('--text <question=text>', 'answer in words, also beside options; repeat for further questions', collect, [])
    .option('--reject [reason]', 'decline the whole bundle')
    .addOption(url())
    .option('--json', 'print JSON, as POST /api/v1/clarification/:id/respond gives it')
    .addHelpText('after', '\nEvery question of a bundle needs an entry: --text QUESTION= leaves one without an answer.')
    .action(async (pendingId: string, options: ServerOptions & AnswerOptions) => {
      const body = toRespondBody(options);
      const path = ['clarification', pendingId, 'respond'];
      const resolution = await client(options).send({ method: 'POST', path, body }, RESOLUTION);
      context.print(options.json ? JSON.stringify(resolution, null, 2) : describeResolution(resolution));
    });
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}

async function listBundles(client: RestClient, workspaceId: string | undefined): Promise<Bundle[]> {
  const bundles: Bundle[] = [];
  let cursor: string | undefined;
  do {
    const query = { workspace_id: workspaceId, cursor, limit: '200' };
    const page = await client.send({ method: 'GET', path: ['clarification'], query }, PAGE);
    bundles.push(...page.bundles);
    cursor = page.next_cursor;
  } while (cursor !== '');
  return bundles;
}

function describeBundle(bundle: Bundle): string {
  const lines = [
    `${terminalLine(bundle.pending_id)}  task ${terminalLine(bundle.task_id)}  ${age(bundle.age_seconds)} old`,
  ];
  if (bundle.context !== '') lines.push(indented(bundle.context, '  '));
  for (const question of bundle.questions) {
    const words = [question.title, question.prompt].filter((text) => text !== '').map(terminalLine);
    const status = question.status === 'pending' ? '' : ` [${terminalLine(question.status)}]`;
    lines.push(`  ${terminalLine(question.question_id)}${status}: ${words.join(' — ')}`);
    for (const option of question.options) {
      const description = option.description === '' ? '' : ` (${terminalLine(option.description)})`;
      lines.push(`    ${terminalLine(option.option_id)}: ${terminalLine(option.label)}${description}`);
    }
  }
  return lines.join('\n');
}

function describeResolution({ claimed, delivered, status, response }: Resolution): string {
  const lines = [claimed ? status : `already ${status}; this is what counts:`];
  if (!claimed) {
    for (const answer of response.answers) {
      const parts = [answer.selected_options.map(terminalLine).join(', '), terminalText(answer.custom_text)];
      const words = parts.filter((part) => part !== '').join('; ') || '(no answer)';
      lines.push(indented(`${terminalLine(answer.question_id)}: ${words}`, '  '));
    }
  }
  if (!delivered) lines.push('the agent has not taken it over yet; the same command tells whether it has');
  return lines.join('\n');
}

function indented(text: string, by: string): string {
  return by + terminalText(text).replaceAll('\n', `\n${by}`);
}

function age(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
