import ts from 'typescript';

export interface CitingTitle {
  readonly file: string;
  readonly title: string;
}

/** Every title of a test or suite that runs, with its file; what a table or a variable inserts is not read. */
export function titlesIn(file: string, text: string): CitingTitle[] {
  const titles: CitingTitle[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const names = namesOf(node.expression);
      const [title] = node.arguments;
      const isTest = /^(it|test|describe)([A-Z]|$)/.test(names[0] ?? '');
      const runs = !names.some((name) => name === 'skip' || name === 'todo');
      if (isTest && !runs) return;
      // An engine's name may come first: describeEngine('sqlite', 'title', …).
      const said = names[0] === 'describeEngine' ? node.arguments[1] : title;
      if (isTest && said !== undefined) titles.push({ file, title: literalText(said) });
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, false));
  return titles.filter(({ title }) => title !== '');
}

/** `it.each(table)` is called like `it`: the names from the left, through calls and tagged tables. */
function namesOf(callee: ts.Expression): string[] {
  if (ts.isIdentifier(callee)) return [callee.text];
  if (ts.isPropertyAccessExpression(callee)) return [...namesOf(callee.expression), callee.name.text];
  if (ts.isCallExpression(callee)) return namesOf(callee.expression);
  if (ts.isTaggedTemplateExpression(callee)) return namesOf(callee.tag);
  return [];
}

/** What of a title stands in the source; an inserted value cannot cite. */
function literalText(title: ts.Node): string {
  if (ts.isStringLiteralLike(title)) return title.text;
  if (ts.isTemplateExpression(title)) {
    return [title.head.text, ...title.templateSpans.map((span) => span.literal.text)].join('…');
  }
  if (ts.isBinaryExpression(title)) return literalText(title.left) + literalText(title.right);
  return '';
}

/** Whole words only: L1 is not cited by L1c, nor X by X-Request-Id. */
export function wordsOf(title: string): string[] {
  return title.match(/[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*/g) ?? [];
}
