import type { Deadline } from '../common/deadline.js';
import type { Reader } from './unit-of-work.js';

/** Resolves when the database answers. @throws when it does not, within the deadline */
export async function ping(reader: Reader, deadline: Deadline): Promise<void> {
  await reader.query(deadline, 'SELECT 1');
}
