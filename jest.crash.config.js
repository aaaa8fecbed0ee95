import base from './jest.config.js';

/** `npm run test:crash`: a process for each crossing of each hand-over, which takes minutes. */
export default { ...base, testMatch: ['**/crash/*.crash.ts'] };
