import { describeEngine } from '../support/engines.js';
import { itSurvivesCrashes } from './crash-suite.js';

describeEngine('postgres', 'KILL, KILL-RECOVERY: a server killed at any crossing', (engine) =>
  itSurvivesCrashes(engine, { include: () => true, alone: true, boundMs: 1_800_000 }),
);
