/** The database as it may be shown: without user, password and parameters, any of which can be a secret. */
export function databaseLabel(databaseUrl: string): string {
  if (databaseUrl.startsWith('sqlite:')) return databaseUrl;
  const { host, pathname } = new URL(databaseUrl);
  return `postgres://${host}${pathname}`;
}
