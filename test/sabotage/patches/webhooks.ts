import type { Patch } from '../patch.js';

const calls = 'test/resume/webhook-calls.spec.ts';
const guard = 'test/resume/guard.spec.ts';
const settings = 'test/resume/settings.spec.ts';

/** The way out of the process to an agent, and how a session says that it wants to be called. */
export const WEBHOOKS: readonly Patch[] = [
  {
    rule: 'WEBHOOK-RESULT',
    says: 'A call that was sent whole and got no status counts as not delivered.',
    file: 'src/tasks/resume/webhook/exchange.ts',
    find: '      mayHaveArrived = true;',
    replace: '',
    spec: calls,
  },
  {
    rule: 'WEBHOOK-RESULT',
    says: 'A call that was not sent whole counts as perhaps delivered.',
    file: 'src/tasks/resume/webhook/exchange.ts',
    find: 'let mayHaveArrived = false;',
    replace: 'let mayHaveArrived = true;',
    spec: calls,
  },
  {
    rule: 'WEBHOOK-RESULT',
    says: 'A redirect counts as accepted.',
    file: 'src/tasks/resume/webhook/exchange.ts',
    find: 'statusCode < 300',
    replace: 'statusCode < 400',
    spec: calls,
  },
  {
    rule: 'WEBHOOK-SIGNED',
    says: 'The signature is made over another id than the one that is sent.',
    file: 'src/tasks/resume/webhook/webhook-calls.ts',
    find: '.sign(id, now, body)',
    replace: '.sign(`${id}x`, now, body)',
    spec: calls,
  },
  {
    rule: 'WEBHOOK-GUARD',
    says: 'Addresses are not looked at.',
    file: 'src/tasks/resume/webhook/webhook-calls.ts',
    find: ': isPublicAddress(address);',
    replace: ': isIP(address) !== 0;',
    spec: guard,
  },
  {
    rule: 'WEBHOOK-GUARD',
    says: 'IPv6 addresses that carry an IPv4 address by 6to4 are public.',
    file: 'src/tasks/resume/webhook/public-address.ts',
    find: "  ['2002::', 16], // 6to4 carries any IPv4 address\n",
    replace: '',
    spec: guard,
  },
  {
    rule: 'WEBHOOK-GUARD',
    says: 'The metadata of clouds can be reached.',
    file: 'src/tasks/resume/webhook/public-address.ts',
    find: "['169.254.0.0', 16]",
    replace: "['169.253.0.0', 16]",
    spec: guard,
  },
  {
    rule: 'WEBHOOK-SETTINGS',
    says: 'A webhook that only moves gets another secret.',
    file: 'src/tasks/resume/chosen-resume.ts',
    find: "(before.mode === 'webhook' ? before.secret : undefined)",
    replace: 'undefined',
    spec: settings,
  },
  {
    rule: 'WEBHOOK-SETTINGS',
    says: 'The url of an agent that fetches is dropped without a word.',
    file: 'src/tasks/resume/chosen-resume.ts',
    find: 'if (input[field] !== undefined) throw',
    replace: 'if (input[field] === null) throw',
    spec: settings,
  },
];
