/** Control characters, bidirectional overrides and exotic line ends. */
const UNSAFE = /[^\P{Cc}\t\n]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Text that others wrote, safe on an operator's terminal: an escape sequence in a question could otherwise repaint
 * the screen or set the clipboard. Tab and line feed pass.
 */
export function terminalText(text: string): string {
  return text.replace(UNSAFE, '\ufffd');
}

/** The same on one line. */
export function terminalLine(text: string): string {
  return terminalText(text.replace(/\s+/gu, ' ').trim());
}
