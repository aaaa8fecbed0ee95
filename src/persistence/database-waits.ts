/** What is waited for: a connection to write on, or one to read on. */
export type DatabaseUse = 'write' | 'read';

/** Told of each wait when it begins; the answer is to be called when it ends, however it ends. */
export type WaitBegins = () => () => void;

/** For whoever has no use for it: commands, tests. */
export const UNWATCHED: WaitBegins = () => () => undefined;
