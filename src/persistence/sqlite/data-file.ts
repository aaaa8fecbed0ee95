import { stat } from 'node:fs/promises';

/**
 * The file that was opened. An open connection goes on with a file that has been deleted, moved or replaced under it as
 * if nothing had happened, and whatever it writes is gone with the process: SQLite does not look, so somebody must.
 */
export class DataFile {
  private constructor(
    private readonly path: string,
    private readonly opened: string,
  ) {}

  /** Without opening it: closing it again would drop the locks that SQLite holds on it. */
  static async at(path: string): Promise<DataFile> {
    return new DataFile(path, await identityOf(path));
  }

  /** @throws when another file, or none, is in its place */
  async assertInPlace(): Promise<void> {
    if ((await identityOf(this.path)) !== this.opened) throw new Error('the database file is not in its place');
  }
}

async function identityOf(path: string): Promise<string> {
  const { dev, ino } = await stat(path);
  return `${dev}:${ino}`;
}
