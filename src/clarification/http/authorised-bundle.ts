import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { PipelineRequest } from '../../http/pipeline-request.js';
import type { AuthorisedBundle, ReachedBundle } from '../bundle-access.js';

/** What the guard has authorised for a request, so that the resolver need not look it up again. */
const authorised = new WeakMap<PipelineRequest, AuthorisedBundle>();

export function rememberAuthorised(request: PipelineRequest, bundle: AuthorisedBundle): void {
  authorised.set(request, bundle);
}

/** The {@link AuthorisedBundle} of a route whose access kind is `bundle`. */
export const AuthorisedBundleParam = createParamDecorator((_: unknown, context: ExecutionContext) =>
  authorisedFor(context),
);

/** Its {@link ReachedBundle}, for routes that hold their request open. The rows are forgotten. */
export const ReachedBundleParam = createParamDecorator((_: unknown, context: ExecutionContext): ReachedBundle => {
  const { pendingId, sessionId } = authorisedFor(context);
  authorised.delete(context.switchToHttp().getRequest<PipelineRequest>());
  return { pendingId, sessionId };
});

function authorisedFor(context: ExecutionContext): AuthorisedBundle {
  const bundle = authorised.get(context.switchToHttp().getRequest<PipelineRequest>());
  if (bundle === undefined) throw new Error('the route does not ask for access to a bundle');
  return bundle;
}
