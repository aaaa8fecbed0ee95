import type { DestinationStream } from 'pino';

/** Turns each JSON record into one line for a person: `09:15:02.123 INFO bundle.claimed pending_id=… request_id=…`. */
export function prettyDestination(destination: DestinationStream): DestinationStream {
  return {
    write: (line) => {
      destination.write(prettyLine(JSON.parse(line) as Record<string, unknown>));
    },
  };
}

function prettyLine(record: Record<string, unknown>): string {
  const { time, level, event, error, ...fields } = record;
  const stack = (error as { stack?: string } | undefined)?.stack;
  const shown = { ...fields, ...(error === undefined ? {} : { error: { ...error, stack: undefined } }) };
  const head = [String(time).slice(11, 23), String(level).toUpperCase().padEnd(5), String(event)];
  const pairs = Object.entries(shown).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? quoted(value) : JSON.stringify(value)}`,
  );
  return `${[...head, ...pairs].join(' ')}\n${stack === undefined || stack === '' ? '' : `${stack}\n`}`;
}

function quoted(value: string): string {
  return /^[\w./:@+-]+$/.test(value) ? value : JSON.stringify(value);
}
