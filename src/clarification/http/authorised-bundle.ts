import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { PipelineRequest } from '../../http/pipeline-request.js';
import type { AuthorisedBundle } from '../bundle-access.js';

/** What the guard has authorised for a request, so that the resolver need not look it up again. */
const authorised = new WeakMap<PipelineRequest, AuthorisedBundle>();

export function rememberAuthorised(request: PipelineRequest, bundle: AuthorisedBundle): void {
  authorised.set(request, bundle);
}

/** The {@link AuthorisedBundle} of a route whose access kind is `bundle`. */
export const AuthorisedBundleParam = createParamDecorator((_: unknown, context: ExecutionContext) => {
  const bundle = authorised.get(context.switchToHttp().getRequest<PipelineRequest>());
  if (bundle === undefined) throw new Error('the route does not ask for access to a bundle');
  return bundle;
});
