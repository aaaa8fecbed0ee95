import type { DomainErrorCode } from '../../common/domain-error.js';
import { contractErrors } from '../contract-errors.js';
import type { AccessKind, Contract, ProtocolError } from '../contract.js';
import { HTTP_STATUS } from '../problem.js';

/** What a caller reads where the contract gives no sentence of its own. */
const SENTENCES: Readonly<Record<DomainErrorCode, string>> = {
  unauthorized: 'a valid access token is required, sent as "Authorization: Bearer TOKEN"',
  forbidden: 'this Origin is not allowed; the operator can add it to CORS_ORIGINS',
  not_found: 'no such route',
  validation_failed: 'colour is not a known field',
  not_active: 'clarification request is no longer active',
  conflict: 'session is completed, which is final',
  payload_too_large: 'the body must not be larger than 1048576 bytes',
  unsupported_media_type: 'a body must be application/json in UTF-8, not compressed',
  too_many_requests: 'more than 600 requests in a minute with this token',
  temporarily_unavailable: 'the service is temporarily unavailable; send the same request again',
  wait_timeout: 'the request has not been answered yet; wait again',
  internal: 'something went wrong on our side; the log has more under this request_id',
};

const NOT_FOUND: Readonly<Record<AccessKind, string>> = {
  workspace: 'workspace not found',
  task: 'task not found',
  session: 'session not found',
  turn: 'turn not found',
  bundle: 'clarification request not found',
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
  const foreign = contract.protocolErrors ?? [];
  const statuses = [...codes.map((code) => HTTP_STATUS[code]), ...foreign.map((error) => error.status)];
  return Object.fromEntries(
    [...new Set(statuses)]
      .sort((a, b) => a - b)
      .map((status) => [
        String(status),
        errorResponse(
          contract,
          codes.filter((code) => HTTP_STATUS[code] === status),
          foreign.filter((error) => error.status === status),
        ),
      ]),
  );
}

function errorResponse(
  contract: Contract,
  codes: readonly DomainErrorCode[],
  foreign: readonly ProtocolError[],
): object {
  const headers = codes.flatMap((code) => HEADERS[code] ?? []);
  const examples: Record<string, { readonly value: unknown }> = {};
  for (const code of codes) examples[code] = { value: exampleOf(contract, code) };
  for (const { example } of foreign) examples['protocol_error'] = { value: example };
  return {
    description: [...codes, ...foreign.map((error) => error.description)].join(' or '),
    headers: Object.fromEntries(headers.map((name) => [name, { schema: { type: 'string' } }])),
    content: {
      'application/json': {
        schema: oneOf([
          ...codes.map((code) => ({ $ref: `#/components/schemas/${NAME(code)}` })),
          ...foreign.map((error) => error.schema),
        ]),
        examples,
      },
    },
  };
}

function oneOf(schemas: readonly object[]): object {
  return schemas.length === 1 && schemas[0] !== undefined ? schemas[0] : { oneOf: schemas };
}

function exampleOf(contract: Contract, code: DomainErrorCode): object {
  const own = contract.errors?.[code];
  const told = { error: own ?? usual(contract, code), code };
  if (code !== 'internal') return told;
  const requestId = '8d3c1c3e-6f3f-4c57-9a53-1f0c4f3a2b1c';
  // Only where a contract speaks of it, something was under way that may or may not be tried again.
  return { ...told, request_id: requestId, ...(own === undefined ? {} : { retryable: true }) };
}

function usual({ access, unavailable }: Contract, code: DomainErrorCode): string {
  const { kind } = access;
  if (code === 'temporarily_unavailable' && unavailable !== undefined) return unavailable;
  if (code === 'not_found' && kind !== 'open' && kind !== 'identified') return NOT_FOUND[kind];
  if (code === 'forbidden' && kind !== 'open' && !access.agents) return 'an agent may not make this kind of call';
  return SENTENCES[code];
}
