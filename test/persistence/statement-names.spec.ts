import { expect, it } from '@jest/globals';
import { Deadline } from '../../src/common/deadline.js';
import { statementOf } from '../../src/persistence/statement.js';
import { describeEachEngine } from '../support/engines.js';

const soon = () => Deadline.after(20_000);

it('a text has one name for ever, no text has that of another, and beyond a bound there are none', () => {
  const first = statementOf('SELECT 1 AS first').postgresName;
  expect(first).toMatch(/^clarion_[0-9a-f]{24}$/);
  const names = Array.from({ length: 2_000 }, (_, number) => statementOf(`SELECT ${number}`).postgresName);
  const given = names.filter((name) => name !== undefined);
  expect(new Set(given).size).toBe(given.length);
  expect(given.length).toBeLessThanOrEqual(500);
  expect(statementOf('SELECT 1 AS first').postgresName).toBe(first);
});

describeEachEngine('more texts than connections keep prepared', (engine) => {
  it('are answered right, however many texts there are', async () => {
    const database = await engine.createDatabase({ poolSize: 1 });
    for (let round = 0; round < 2; round += 1) {
      for (let number = 0; number < 600; number += 50) {
        const { rows } = await database.unitOfWork.run('test', soon(), async (tx) => {
          for (let more = 0; more < 49; more += 1) await tx.query(`SELECT ${number + more} AS n`);
          return tx.query(`SELECT ${number + 49} AS n`);
        });
        expect(rows).toEqual([{ n: number + 49 }]);
      }
    }
  });
});
