/** Calls back once with whether a reply has been written out, or its connection closed before that. */
export type OnReply = (listener: (written: boolean) => void) => void;
