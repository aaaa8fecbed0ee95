import { Catch } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import type { Response } from 'express';
import type { PipelineRequest } from './pipeline-request.js';
import { ProblemWriter } from './problem-writer.js';

/** Everything that guards, handlers and the router throw. */
@Catch()
export class DomainExceptionFilter implements ExceptionFilter {
  constructor(private readonly problems: ProblemWriter) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.problems.write(error, http.getRequest<PipelineRequest>(), http.getResponse<Response>());
  }
}
