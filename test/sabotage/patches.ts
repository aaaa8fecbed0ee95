import { ACCESS } from './patches/access.js';
import { ASKING } from './patches/asking.js';
import { CLAIM } from './patches/claim.js';
import { DATABASE } from './patches/database.js';
import { EVENTS } from './patches/events.js';
import { LIFECYCLE } from './patches/lifecycle.js';
import { LISTING } from './patches/listing.js';
import { OPERATION } from './patches/operation.js';
import { OUTCOMES } from './patches/outcomes.js';
import { ROWS } from './patches/rows.js';
import { SURFACES } from './patches/surfaces.js';
import { WEBHOOKS } from './patches/webhooks.js';
import type { Patch } from './patch.js';

export const PATCHES: readonly Patch[] = [
  ...CLAIM,
  ...ACCESS,
  ...LIFECYCLE,
  ...LISTING,
  ...ROWS,
  ...OUTCOMES,
  ...ASKING,
  ...SURFACES,
  ...EVENTS,
  ...DATABASE,
  ...OPERATION,
  ...WEBHOOKS,
];
