import { v4, v7 } from 'uuid';

/** Ids of rows: UUID v7, so that within one process later ids sort after earlier ones. */
export function newRowId(): string {
  return v7();
}

/** Ids that must not be guessed (`pending_id`): UUID v4, 122 random bits. */
export function newUnguessableId(): string {
  return v4();
}
