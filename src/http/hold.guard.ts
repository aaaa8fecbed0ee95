import { Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { Response } from 'express';
import { contractOf } from './contract.js';
import { HeldRequests } from './held-requests.js';
import type { PipelineRequest } from './pipeline-request.js';

/** 429 and 503 for a request that would be held open, once it is known to be allowed and well-formed. */
@Injectable()
export class HoldGuard implements CanActivate {
  constructor(private readonly held: HeldRequests) {}

  canActivate(context: ExecutionContext): true {
    const holds = contractOf(context.getHandler())?.holds;
    if (holds === undefined) return true;
    const http = context.switchToHttp();
    const request = http.getRequest<PipelineRequest>();
    const response = http.getResponse<Response>();
    // Its close has been told already.
    if (response.closed || !holds(request.query)) return true;
    response.once('close', this.held.hold(request));
    return true;
  }
}
