import { describeEngine } from '../support/engines.js';
import { itSurvivesCrashes } from './crash-suite.js';

// Every other crossing too, each in a process of its own: `npm run test:crash`.
describeEngine('postgres', 'KILL, KILL-RECOVERY: a server killed around a commit or a call', (engine) =>
  itSurvivesCrashes(engine, {
    include: (crossing, { shared }) => /COMMIT|call/.test(crossing) && shared?.[crossing] === undefined,
    alone: false,
    boundMs: 300_000,
  }),
);
