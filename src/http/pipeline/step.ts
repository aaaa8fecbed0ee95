import type { NextFunction, RequestHandler, Response } from 'express';
import type { PipelineRequest } from '../pipeline-request.js';

/** One stage of the pipeline: returns to let the request pass, throws to refuse it. */
export type Step = (request: PipelineRequest, response: Response) => void | Promise<void>;

export function toMiddleware(step: Step): RequestHandler {
  return (request, response, next: NextFunction) => {
    void pass(step, request as PipelineRequest, response, next);
  };
}

async function pass(step: Step, request: PipelineRequest, response: Response, next: NextFunction): Promise<void> {
  try {
    const pending = step(request, response);
    if (pending !== undefined) await pending;
  } catch (error) {
    next(error);
    return;
  }
  next();
}
