import { Injectable } from '@nestjs/common';
import type { Instant } from '../../common/clock.js';
import type { SqlExecutor, Tx } from '../../persistence/unit-of-work.js';

export interface User {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Instant;
}

interface UserSql {
  id: string;
  name: string;
  created_at: Instant;
}

@Injectable()
export class UsersRepository {
  /** False when the name is taken, also by somebody who takes it at the same instant; nothing is written then. */
  async insert(tx: Tx, user: User): Promise<boolean> {
    const { affected } = await tx.query(
      'INSERT INTO users (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING',
      [user.id, user.name, user.createdAt],
    );
    return affected === 1;
  }

  async findByName(sql: SqlExecutor, name: string): Promise<User | undefined> {
    const { rows } = await sql.query<UserSql>('SELECT id, name, created_at FROM users WHERE name = $1', [name]);
    const row = rows[0];
    return row === undefined ? undefined : { id: row.id, name: row.name, createdAt: row.created_at };
  }
}
