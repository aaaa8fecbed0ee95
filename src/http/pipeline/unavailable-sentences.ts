import type { Route } from '../contracted-routes.js';

/** What a 503 says on a route that has a sentence of its own. */
export type UnavailableSentence = (method: string, path: string) => string | undefined;

/** Found from the path alone, because the budget is already running when authentication precedes routing. */
export function unavailableSentences(routes: readonly Route[]): UnavailableSentence {
  const own = routes.flatMap(({ method, path, contract: { unavailable } }) =>
    unavailable === undefined
      ? []
      : [
          {
            method: method.toUpperCase(),
            path: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}/?$`, 'i'),
            unavailable,
          },
        ],
  );
  return (method, path) => own.find((route) => route.method === method && route.path.test(path))?.unavailable;
}
