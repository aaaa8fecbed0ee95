import { Controller, Delete, Get, Post, Req, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Contract } from '../http/contract.js';
import { HeldRequests } from '../http/held-requests.js';
import type { PipelineRequest } from '../http/pipeline-request.js';
import { MCP_DELETE, MCP_GET, MCP_POST } from './mcp-contracts.js';
import { arrivalOn } from './arrival.js';
import { McpEndpoint } from './sdk/mcp-endpoint.js';

const access = { kind: 'identified', agents: false } as const;

/** The external surface: for users and their bots, never for agents. */
@Controller('mcp')
export class McpController {
  constructor(
    private readonly endpoint: McpEndpoint,
    private readonly held: HeldRequests,
  ) {}

  @Post()
  @Contract({ summary: 'Send MCP messages (external surface)', access, ...MCP_POST })
  post(@Req() request: PipelineRequest, @Res() response: Response): Promise<void> {
    return this.endpoint.post(arrivalOn('external', request, this.held), request, response, request.body);
  }

  @Get()
  @Contract({ summary: 'Open the MCP event stream (external surface)', access, ...MCP_GET })
  get(@Req() request: PipelineRequest, @Res() response: Response): Promise<void> {
    return this.endpoint.get(arrivalOn('external', request, this.held), request, response);
  }

  @Delete()
  @Contract({ summary: 'End an MCP session (external surface)', access, ...MCP_DELETE })
  delete(@Req() request: PipelineRequest, @Res() response: Response): Promise<void> {
    return this.endpoint.delete(arrivalOn('external', request, this.held), request, response);
  }
}
