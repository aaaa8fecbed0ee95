import type { DomainErrorCode } from '../../common/domain-error.js';
import { contractErrors } from '../contract-errors.js';
import type { Contract } from '../contract.js';
import { HTTP_STATUS } from '../problem.js';

/** A sentence a caller may meet for each code: the examples of the documentation. */
const EXAMPLES: Readonly<Record<DomainErrorCode, string>> = {
  unauthorized: 'a valid access token is required, sent as "Authorization: Bearer TOKEN"',
  forbidden: 'an agent may not make this kind of call',
  not_found: 'clarification request not found',
  validation_failed: 'answers[0].question_id is required',
  not_active: 'clarification request is no longer active',
  conflict: 'the session is completed',
  payload_too_large: 'the body must not be larger than 1048576 bytes',
  unsupported_media_type: 'a body must be application/json in UTF-8, not compressed',
  too_many_requests: 'more than 600 requests in a minute',
  temporarily_unavailable: 'clarification response is temporarily unavailable',
  wait_timeout: 'no answer yet; wait again',
  internal: 'the answer could not be handed over',
};

const HEADERS: Partial<Record<DomainErrorCode, string>> = {
  unauthorized: 'WWW-Authenticate',
  too_many_requests: 'Retry-After',
  temporarily_unavailable: 'Retry-After',
};

const NAME = (code: DomainErrorCode) => `error_${code}`;

/** One closed schema a code, for `components.schemas`. */
export function errorSchemas(): Record<string, object> {
  return Object.fromEntries(
    (Object.keys(HTTP_STATUS) as DomainErrorCode[]).map((code) => {
      const internal = code === 'internal';
      return [
        NAME(code),
        {
          type: 'object',
          properties: {
            error: { type: 'string', description: 'A sentence for a person' },
            code: { type: 'string', const: code, description: 'What a program branches on' },
            ...(internal ? INTERNAL_PROPERTIES : {}),
          },
          required: ['error', 'code', ...(internal ? ['request_id'] : [])],
          additionalProperties: false,
        },
      ];
    }),
  );
}

const INTERNAL_PROPERTIES = {
  request_id: { type: 'string', description: 'Under which the operator finds more in the log' },
  retryable: {
    type: 'boolean',
    description: 'After a failed hand-over: false means that the answer is recorded. Sending again is safe either way.',
  },
};

/** The error responses of a route, by status. */
export function errorResponses(contract: Contract): Record<string, object> {
  const codes = contractErrors(contract);
  const statuses = [...new Set(codes.map((code) => HTTP_STATUS[code]))].sort((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => [String(status), errorResponse(codes.filter((code) => HTTP_STATUS[code] === status))]),
  );
}

function errorResponse(codes: readonly DomainErrorCode[]): object {
  const headers = codes.flatMap((code) => HEADERS[code] ?? []);
  return {
    description: codes.join(' or '),
    headers: Object.fromEntries(headers.map((name) => [name, { schema: { type: 'string' } }])),
    content: {
      'application/json': {
        schema: refs(codes),
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }])),
      },
    },
  };
}

function refs(codes: readonly DomainErrorCode[]): object {
  const all = codes.map((code) => ({ $ref: `#/components/schemas/${NAME(code)}` }));
  return all.length === 1 && all[0] !== undefined ? all[0] : { oneOf: all };
}

function exampleOf(code: DomainErrorCode): object {
  const told = { error: EXAMPLES[code], code };
  return code === 'internal' ? { ...told, request_id: '8d3c1c3e-6f3f-4c57-9a53-1f0c4f3a2b1c', retryable: true } : told;
}
