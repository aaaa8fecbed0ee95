import type { IncomingMessage } from 'node:http';
import { CallerGoneError } from '../../common/deadline.js';
import { PayloadTooLargeError, UnsupportedMediaTypeError, ValidationError } from '../../common/domain-error.js';
import { assertBoundedJson } from '../../common/input/json-bounds.js';
import { expectsContinue } from '../expectations.js';
import type { Step } from './step.js';

/**
 * Reads the body, at most `limit` bytes of it, and parses it as JSON. No bytes: no body, whatever the headers say.
 * Our own reader, because body-parser takes any other type for an empty body, decodes broken UTF-8 without a word,
 * and inflates.
 */
export function readJsonBody(limit: number): Step {
  return async (request, response) => {
    const { headers } = request;
    const chunked = headers['transfer-encoding'] !== undefined;
    const length = Number(headers['content-length'] ?? 0);
    if (!chunked && length === 0) return;
    // Without a type the bytes decide: some clients send an empty chunked body with every POST.
    if (headers['content-type'] !== undefined || !chunked) assertJson(request);
    if (length > limit) throw tooLarge(limit);
    const leftMs = request.deadline.remainingMs;
    if (expectsContinue(request)) response.writeContinue();
    const bytes = await readAtMost(limit, request);
    // The budget is ours to spend, not the caller's slow line's.
    request.deadline = request.deadline.withMilliseconds(leftMs);
    if (bytes.length === 0) return;
    assertJson(request);
    const body = parseJson(bytes);
    assertBoundedJson(body);
    request.body = body;
  };
}

function assertJson({ headers, headersDistinct }: IncomingMessage): void {
  // Node goes by the first of several types, the MCP SDK by all of them.
  const isOneType = (headersDistinct['content-type']?.length ?? 0) <= 1;
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith('charset='));
  const isUtf8 = charset === undefined || /^charset="?utf-?8"?$/.test(charset);
  const encoding = (headers['content-encoding'] ?? 'identity').toLowerCase();
  if (!isOneType || type.trim() !== 'application/json' || !isUtf8 || encoding !== 'identity') {
    throw new UnsupportedMediaTypeError('a body must be application/json in UTF-8, not compressed');
  }
}

/** Over the limit the rest is not kept; Node reads it off the line after the answer, so that the caller gets that. */
function readAtMost(limit: number, request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (settled: () => void) => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
      settled();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) chunks.push(chunk);
      else settle(() => reject(tooLarge(limit)));
    };
    const onEnd = () => settle(() => resolve(Buffer.concat(chunks)));
    const onClose = () => settle(() => reject(new CallerGoneError()));
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}

function tooLarge(limit: number): PayloadTooLargeError {
  return new PayloadTooLargeError(`the body must not be larger than ${limit} bytes`);
}

function parseJson(bytes: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ValidationError('body', 'must be UTF-8');
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's own message quotes the body.
    throw new ValidationError('body', 'must be JSON');
  }
}
