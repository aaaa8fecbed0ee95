import { ANSWER_KINDS } from '../lib/answers.js';
import { compare } from '../lib/compare.js';
import { column, ratioRow, type ResultRow } from '../lib/results.js';
import { AnswerSide, type BenchContext, type Sites } from '../lib/site.js';
import { messagesText } from '../lib/sizes.js';

/** 5.4: an answer over REST costs the same whatever the size of the table. */
export async function measureTableSize(context: BenchContext, { large, small }: Sites): Promise<ResultRow[]> {
  const { samples, warmUp, random } = { ...context.sizes, random: context.random };
  const rows: ResultRow[] = [];
  for (const kind of ANSWER_KINDS) {
    context.say(`${kind.name}, large table against small`);
    const [onLarge, onSmall] = [
      await AnswerSide.on(large, kind, samples + warmUp),
      await AnswerSide.on(small, kind, samples + warmUp),
    ];
    const [a, b] = await compare(onLarge, onSmall, { samples, warmUp, random });
    onLarge.close();
    onSmall.close();
    rows.push(
      ratioRow(
        { row: 'table-size', database: context.engine, measure: `answer over REST, ${kind.name}` },
        column(messagesText(context.sizes.large), a),
        column(messagesText(context.sizes.small), b),
        1.3,
      ),
    );
  }
  return rows;
}
