import { Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { validateInput } from '../common/input/validate-input.js';
import { contractOf } from './contract.js';
import type { PipelineRequest } from './pipeline-request.js';
import { readQuery } from './read-query.js';

class NoInput {}

/**
 * Replaces the body and the query by validated instances of the contract's classes; 400 otherwise. A guard and not a
 * pipe, so that what a handler does not ask for is refused as well.
 */
@Injectable()
export class InputGuard implements CanActivate {
  canActivate(context: ExecutionContext): true {
    const contract = contractOf(context.getHandler());
    if (contract === undefined) return true;
    const request = context.switchToHttp().getRequest<PipelineRequest>();
    if (contract.body !== 'raw') {
      const body = bodyOf(request);
      const isDescribed = typeof contract.body === 'object';
      request.body = isDescribed ? body : validateInput(contract.body ?? NoInput, body);
    }
    const query = validateInput(contract.query ?? NoInput, readQuery(request.url, contract.query), 'query');
    // Express 5 computes `query` in a getter. Where none is declared, no handler asks for it.
    if (contract.query !== undefined) {
      Object.defineProperty(request, 'query', { value: query, configurable: true, enumerable: true });
    }
    return true;
  }
}

/** Nothing sent is an empty object; a `null` that was sent is not. */
function bodyOf(request: PipelineRequest): unknown {
  const body: unknown = request.body;
  return body === undefined ? {} : body;
}
