/** Paths that need no token: the web client's page and files, and health. Compared as sent: an escape opens nothing. */
export function isOpenPath(path: string, options: { metricsAndDocs: boolean }): boolean {
  if (path === '/' || path === '/favicon.ico' || path.startsWith('/assets/') || path.startsWith('/health/'))
    return true;
  return options.metricsAndDocs && /^\/(metrics|docs|docs-json|docs\/.*)$/.test(path);
}
