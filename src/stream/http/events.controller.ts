import { Controller, Get, Headers, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Contract } from '../../http/contract.js';
import { CallerParam } from '../../http/request-params.js';
import type { Caller } from '../../identity/caller.js';
import { EventStreams } from '../event-streams.js';
import { DESCRIPTION, STREAMED } from './documentation.js';

@Controller('api/v1/events')
export class EventsController {
  constructor(private readonly streams: EventStreams) {}

  @Get()
  @Contract({
    summary: 'Hear what happens, as Server-Sent Events',
    description: DESCRIPTION,
    tag: 'Events',
    access: { kind: 'identified', agents: true },
    holds: () => true,
    success: {
      status: 200,
      description: 'A stream that does not end by itself',
      contentType: 'text/event-stream',
      example: STREAMED,
    },
  })
  stream(
    @CallerParam() caller: Caller,
    @Headers('last-event-id') lastEventId: string | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): void {
    this.streams.begin(caller, lastEventId ?? '', response);
    // Nobody reads what follows the head.
    if (request.method === 'HEAD') response.end();
  }
}
