import type { Authenticator } from '../../identity/authenticator.js';
import { isOpenPath } from './open-paths.js';
import type { Step } from './step.js';

/** 401 before anything else is looked at: body, Host, whether there is such a route. */
export function authenticate(authenticator: Authenticator, options: { metricsAndDocs: boolean }): Step {
  return async (request) => {
    if (isOpenPath(request.path, options)) return;
    request.caller = await authenticator.authenticate(request.headers.authorization, request.deadline);
  };
}
