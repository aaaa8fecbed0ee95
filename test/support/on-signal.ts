/** When Ctrl-C or a supervisor ends this process early: cleans up, and only then ends, with status 130. */
export function onSignal(cleanUp: () => void | Promise<void>): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => void (async () => cleanUp())().finally(() => process.exit(130)));
  }
}
