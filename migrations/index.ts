import { CreateCoreTables1764547200000 } from './1764547200000-CreateCoreTables.js';
import { AddOrderedPendingIdIndex1764547260000 } from './1764547260000-AddOrderedPendingIdIndex.js';
import { AddOpenBundleIndexes1764547320000 } from './1764547320000-AddOpenBundleIndexes.js';
import { AddTurnDispatches1764547380000 } from './1764547380000-AddTurnDispatches.js';
import { RebuildOpenBundleIndexes1764547440000 } from './1764547440000-RebuildOpenBundleIndexes.js';
import { AddSupersededBy1764547500000 } from './1764547500000-AddSupersededBy.js';

/** All migrations in order, listed by hand so that the build cannot silently lose one. */
export const MIGRATIONS = [
  CreateCoreTables1764547200000,
  AddOrderedPendingIdIndex1764547260000,
  AddOpenBundleIndexes1764547320000,
  AddTurnDispatches1764547380000,
  RebuildOpenBundleIndexes1764547440000,
  AddSupersededBy1764547500000,
];
