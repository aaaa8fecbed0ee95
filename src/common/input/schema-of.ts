import { fieldsOf } from './fields.js';
import type { Field, InputClass } from './fields.js';
import type { JsonSchema, ObjectSchema } from './field-rules.js';

/** The JSON Schema of an input class, closed at every level. Accepts exactly what `validateInput` accepts. */
export function schemaOf(type: InputClass): ObjectSchema {
  const fields = [...fieldsOf(type)];
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map(([name, field]) => [name, { ...shape(field), ...noteOf(field) }])),
    required: fields.filter(([, field]) => !field.optional).map(([name]) => name),
    additionalProperties: false,
  };
}

function shape(field: Field): JsonSchema {
  switch (field.kind) {
    case 'scalar':
      return field.schema;
    case 'object':
      return schemaOf(field.type());
    case 'list':
      return {
        type: 'array',
        items: typeof field.item === 'function' ? schemaOf(field.item()) : field.item,
        ...(field.min > 0 ? { minItems: field.min } : {}),
        maxItems: field.max,
      };
  }
}

function noteOf(field: Field): JsonSchema {
  const { description, example, default: preset } = field.note;
  return {
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { examples: [example] }),
    ...(preset === undefined ? {} : { default: preset }),
  };
}
