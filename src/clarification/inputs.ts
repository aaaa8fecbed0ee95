import { IdField, IntegerField, TextField } from '../common/input/fields.js';
import { BundleInput } from './domain/new-bundle.js';

export class CreateBundleInput extends BundleInput {
  @IdField({ description: 'The session whose agent asks.' })
  session_id!: string;

  @IdField({ optional: true, description: "The session's task; only checked." })
  task_id?: string;
}

export class ListBundlesInput {
  @IdField({ optional: true, description: 'Only questions of this workspace; it only narrows.' })
  workspace_id?: string;

  @TextField({
    max: 64,
    optional: true,
    description: 'Only questions asked at or after this RFC 3339 date-time, any offset.',
    example: '2026-01-31T09:00:00Z',
  })
  created_since?: string;

  @TextField({ max: 2048, optional: true, description: 'The next_cursor of the page before.' })
  cursor?: string;

  @IntegerField({ optional: true, default: 50, description: 'How many; below 1 is 50, above 200 is 200.' })
  limit?: number;
}

export class WaitInput {
  @IntegerField({
    optional: true,
    min: 0,
    default: 50,
    description: "Seconds; above the server's cap it is the cap.",
  })
  timeout?: number;
}
