import { DocumentBuilder } from '@nestjs/swagger';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { ObjectSchema } from '../../common/input/field-rules.js';
import type { InputClass } from '../../common/input/fields.js';
import { schemaOf } from '../../common/input/schema-of.js';
import { successesOf } from '../contract.js';
import type { Contract, Success } from '../contract.js';
import type { Route } from '../contracted-routes.js';
import { errorResponses, errorSchemas } from './error-responses.js';

const DESCRIPTION = `Software agents ask structured questions and get back exactly one authorised, durable answer.

Every body, query and response is closed: an unknown field is an error that names it. Every error is
\`{"error": "<sentence>", "code": "<stable code>"}\`. Sending the same request again is always safe.
While authentication is off, a request without a token may do everything.`;

const SENDS_BODY = new Set(['post', 'put', 'patch']);

/** OpenAPI 3.1 from the contracts alone, so that what is documented is what is enforced. */
export function openApiDocument(routes: readonly Route[]): OpenAPIObject {
  const base = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Clarion')
    .setVersion('1')
    .setDescription(DESCRIPTION)
    .addBearerAuth(
      { type: 'http', scheme: 'bearer', description: 'An access token, or a session’s agent token' },
      'bearer',
    )
    .build();
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    if (route.method === 'all') continue;
    (paths[route.path] ??= {})[route.method] = operation(route);
  }
  const document = { ...base, paths, components: { ...base.components, schemas: errorSchemas() } };
  // Schemas of typebox are objects with methods of their own; a document is plain JSON.
  return JSON.parse(JSON.stringify(document)) as OpenAPIObject;
}

function operation({ method, path, name, contract }: Route): object {
  const { summary, description, tag, access, body, bodyExample, query } = contract;
  return {
    operationId: name.replace('Controller.', '_'),
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [tag ?? 'Other'],
    security: access.kind === 'open' ? [] : [{ bearer: [] }],
    parameters: [...pathParameters(path), ...(query === undefined ? [] : queryParameters(query))],
    ...(body === undefined || !SENDS_BODY.has(method) ? {} : { requestBody: requestBody(body, bodyExample) }),
    responses: {
      ...Object.fromEntries(successesOf(contract).map((success) => [String(success.status), response(success)])),
      ...errorResponses(contract),
    },
  };
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    description: 'Any text: one that is no id is not found, like one that is missing',
    schema: { type: 'string' },
  }));
}

function queryParameters(type: InputClass): object[] {
  const { properties, required } = schemaOf(type);
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema,
  }));
}

function requestBody(body: NonNullable<Contract['body']>, example: unknown): object {
  const schema = body === 'raw' ? {} : typeof body === 'object' ? body.schema : schemaOf(body);
  const required = body === 'raw' || (schema as ObjectSchema).required.length > 0;
  return { required, content: { 'application/json': { schema, ...(example === undefined ? {} : { example }) } } };
}

function response({ description, schema, example, contentType = 'application/json' }: Success): object {
  if (schema === undefined && contentType === 'application/json') return { description };
  const content = { schema: schema ?? { type: 'string' }, ...(example === undefined ? {} : { example }) };
  return { description, content: { [contentType]: content } };
}
