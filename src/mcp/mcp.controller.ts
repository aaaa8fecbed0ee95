import { Controller, Delete, Get, Post, Req, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Contract } from '../http/contract.js';
import type { PipelineRequest } from '../http/pipeline-request.js';
import { arrivalOn, MCP_ERRORS, MCP_MESSAGES, MCP_SESSION_ENDED, MCP_STREAM } from './mcp-http.js';
import { McpEndpoint } from './sdk/mcp-endpoint.js';

const access = { kind: 'identified', agents: false } as const;
const tag = 'MCP';

/** The external surface: for users and their bots, never for agents. */
@Controller('mcp')
export class McpController {
  constructor(private readonly endpoint: McpEndpoint) {}

  @Post()
  @Contract({
    summary: 'Send MCP messages (external surface)',
    tag,
    access,
    body: 'raw',
    success: MCP_MESSAGES,
    errors: MCP_ERRORS,
  })
  post(@Req() request: PipelineRequest, @Res() response: Response): Promise<void> {
    return this.endpoint.post(arrivalOn('external', request), request, response, request.body);
  }

  @Get()
  @Contract({
    summary: 'Open the MCP event stream (external surface)',
    tag,
    access,
    body: 'raw',
    success: MCP_STREAM,
    errors: MCP_ERRORS,
  })
  get(@Req() request: PipelineRequest, @Res() response: Response): Promise<void> {
    return this.endpoint.get(arrivalOn('external', request), request, response);
  }

  @Delete()
  @Contract({
    summary: 'End an MCP session (external surface)',
    tag,
    access,
    body: 'raw',
    success: MCP_SESSION_ENDED,
    errors: MCP_ERRORS,
  })
  delete(@Req() request: PipelineRequest, @Res() response: Response): Promise<void> {
    return this.endpoint.delete(arrivalOn('external', request), request, response);
  }
}
