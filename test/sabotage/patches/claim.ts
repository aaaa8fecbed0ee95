import type { Patch } from '../patch.js';

const resolver = 'src/clarification/clarification-resolver.ts';
const claim = 'src/clarification/persistence/claim-bundle.tx.ts';
const spec = 'test/lifecycle/claim.spec.ts';
const responding = 'test/http/respond.spec.ts';

/** Who wins, and what everybody is told. */
export const CLAIM: readonly Patch[] = [
  {
    rule: 'P1',
    says: 'A session that ends rejects its open questions.',
    file: 'src/clarification/persistence/close-bundles.tx.ts',
    find: "return close(tx, await lockActiveRows(tx, sessionId), 'expired', now);",
    replace: `const rows = await lockActiveRows(tx, sessionId);
  await changeRows(tx, rows.map((row) => ({ row, change: { kind: 'rejected' } })), now);
  return updated(rows);`,
    spec: 'test/architecture/p1-source.spec.ts',
  },
  {
    rule: 'P1a',
    says: 'Every question of a bundle gets the answer to the first.',
    file: claim,
    find: 'const response = answers.get(row.questionId);',
    replace: 'const response = outcome.answers[0];',
    spec,
  },
  {
    rule: 'P1b',
    says: 'What was sent is claimed as it was sent.',
    file: resolver,
    find: 'decided: normaliseOutcome(valid, authorised.rows)',
    replace: 'decided: valid',
    spec,
  },
  {
    rule: 'P2',
    says: 'Rows that were resolved when the outcome was validated are not claimed.',
    file: resolver,
    find: 'const claim = await this.phases.claim(',
    replace: `if (bundle.rows.every((row) => row.status === 'answered')) return this.tellLoser(bundle.pendingId, deadline);
    const claim = await this.phases.claim(`,
    spec,
    title: 'becomes active again',
  },
  {
    rule: 'P2',
    says: 'The claim goes by the status alone, because the rest was looked at before.',
    file: claim,
    find: "AND ${isActiveBundleRow(tx.dialect, 'm')} RETURNING id`,",
    replace: "AND COALESCE(${tx.dialect.metadataText('m.metadata', 'status')}, '') IN ('', 'pending') RETURNING id`,",
    spec,
    title: 'stops being active',
  },
  {
    rule: 'R1',
    says: 'A claim that changed no row counts as won.',
    file: claim,
    find: 'if (marked.length === 0) return',
    replace: 'if (marked.length === 0 && winnerResponse(current, pendingId) === undefined) return',
    spec,
  },
  {
    rule: 'R2',
    says: 'A loser is told its own status.',
    file: resolver,
    find: "if (claim.kind === 'lost') return claim.resolution;",
    replace: "if (claim.kind === 'lost') return { ...claim.resolution, status: decided.kind };",
    spec,
  },
  {
    rule: 'R2',
    says: 'A loser is told that the winner’s answer has arrived before it has.',
    file: resolver,
    find: 'delivered: isDelivered, ...winner',
    replace: 'delivered: true, ...winner',
    spec: 'test/lifecycle/hand-over.spec.ts',
  },
  {
    rule: 'R2a',
    says: 'A claim that was not won is tried once more.',
    file: resolver,
    find: "if (result.kind === 'claimed') return result;",
    replace: `if (result.kind === 'claimed') return result;
      const again = await this.claim(bundle, decided, now, deadline);
      if (again.kind === 'claimed') return again;`,
    spec,
  },
  {
    rule: 'R2c',
    says: 'What comes after a winner is not validated.',
    file: resolver,
    find: 'const valid = validateOutcome(outcome, authorised.rows);',
    replace: `if (authorised.rows.every((row) => row.status === 'answered')) return { bundle: authorised, decided: { kind: 'rejected', reason: '' } };
      const valid = validateOutcome(outcome, authorised.rows);`,
    spec,
  },
  {
    rule: 'R3',
    says: 'Whoever saw the bundle open when its outcome was validated has won.',
    file: claim,
    find: 'if (marked.length === 0) return',
    replace: "if (marked.length === 0 && !rows.every((row) => row.status === 'pending')) return",
    spec: 'test/http/race.spec.ts',
    title: 'of 64 callers',
  },
  {
    rule: 'R4',
    says: 'The resolution is published inside the claim’s transaction.',
    file: resolver,
    find: 'claimBundle(tx, bundle.pendingId, bundle.rows, outcome, now),',
    replace: `claimBundle(tx, bundle.pendingId, bundle.rows, outcome, now).then((claim) => {
          if (claim.kind === 'claimed') {
            const { pendingId, sessionId, taskId, status } = claim.bundle;
            this.delivery['events'].publish([{ type: 'clarification.resolved', taskId, sessionId, pendingId, status, actor: '', surface: 'rest' }]);
          }
          return claim;
        }),`,
    spec,
  },
  {
    rule: 'R4a',
    says: 'Whoever finds its own words in the rows after a COMMIT without reply takes them for its own.',
    file: claim,
    find: 'row.updatedAt === now && row.deliveryPending && says(row, outcome)',
    replace: 'row.deliveryPending && says(row, outcome)',
    spec,
  },
  {
    rule: 'R6',
    says: 'The process remembers who has won; after a restart each loser is told its own decision.',
    file: resolver,
    find: "if (claim.kind === 'lost') return claim.resolution;",
    replace: `const memory = this as unknown as { winners?: Set<string> };
    const winners = (memory.winners ??= new Set());
    if (claim.kind === 'lost') {
      const told = claim.resolution;
      return winners.has(bundle.pendingId) ? told : { ...told, status: decided.kind };
    }
    winners.add(bundle.pendingId);`,
    spec,
  },
  {
    rule: 'R9',
    says: 'The agent can see that a rejection came over MCP.',
    file: resolver,
    find: 'const valid = validateOutcome(outcome, authorised.rows);',
    replace: `const sent = validateOutcome(outcome, authorised.rows);
      const valid = sent.kind === 'rejected' && how.surface === 'mcp' ? { ...sent, reason: \`\${sent.reason} (by an agent)\` } : sent;`,
    spec,
  },
  {
    rule: 'R10',
    says: 'Over REST a success does not say so.',
    file: 'src/clarification/http/clarification.controller.ts',
    find: 'return { success: true, ...(await this.resolver',
    replace: 'return { ...(await this.resolver',
    spec: responding,
  },
  {
    rule: 'R10',
    says: 'What can no longer be answered is gone, 410.',
    file: 'src/http/problem.ts',
    find: 'not_active: 409,',
    replace: 'not_active: 410,',
    spec: responding,
  },
  {
    rule: 'R12',
    says: 'Over REST the response of an answer has no reject_reason.',
    file: 'src/clarification/domain/bundle.ts',
    find: 'reject_reason: rejectReason,',
    replace: '...(rejectReason && { reject_reason: rejectReason }),',
    spec: responding,
  },
  {
    rule: 'N4',
    says: 'Over MCP a caller that lost is told so by an error.',
    file: 'src/mcp/tools/answer-question.tool.ts',
    find: 'return { claimed, delivered, status, response };',
    replace:
      "if (!claimed) throw new Error('somebody else was first');\n      return { claimed, delivered, status, response };",
    spec: responding,
  },
  {
    rule: 'N4a',
    says: 'Over MCP a bundle that nobody can answer any more reads like one that does not exist.',
    file: 'src/mcp/mcp-error.ts',
    find: 'return `${told.code}: ${SENTENCES[told.code](told, requestId)}`;',
    replace:
      "return `${told.code === 'not_active' ? 'not_found' : told.code}: ${SENTENCES[told.code](told, requestId)}`;",
    spec: responding,
  },
  {
    rule: 'N8c',
    says: 'Claimed first and validated afterwards: a refusal leaves the bundle rejected.',
    file: resolver,
    find: 'const valid = validateOutcome(outcome, authorised.rows);',
    replace: `let valid: Outcome;
      try {
        valid = validateOutcome(outcome, authorised.rows);
      } catch (error) {
        await this.claim(authorised, { kind: 'rejected', reason: '' }, '2030-01-01T00:00:00.000Z', deadline);
        throw error;
      }`,
    spec: 'test/http/clarification-answers.spec.ts',
  },
  {
    rule: 'L12',
    says: 'A bundle that is answered in part is overwritten as a whole.',
    file: claim,
    find: 'const claimed = current.filter((row) => claimedIds.has(row.id));',
    replace:
      'const claimed = current;\n  current.forEach((row) => claimedIds.add(row.id));\n  marked.length = current.length;',
    spec,
  },
];
