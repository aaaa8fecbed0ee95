import { Controller, Get, Post, Res } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Response } from 'express';
import { Type } from 'typebox';
import { Contract } from '../../src/http/contract.js';
import { DocumentedExchanges } from '../support/documented-exchanges.js';
import { startProbeApp } from './probe-app.js';
import type { ProbeApp } from './probe-app.js';
import { sendRaw } from './raw-request.js';

const access = { kind: 'identified', agents: true } as const;
const COUNT = Type.Object(
  { count: Type.Integer(), at: Type.String({ format: 'date-time' }) },
  { additionalProperties: false },
);
const success = { status: 200, description: 'A count', schema: COUNT } as const;
const AT = '2026-01-31T09:00:00.000Z';

/** Each handler but the first says something that its contract does not. */
@Controller('api/v1/counts')
class CountsController {
  @Get('right')
  @Contract({ summary: 'Right', access, success })
  right() {
    return { count: 1, at: AT };
  }

  @Get('wrong-type')
  @Contract({ summary: 'Wrong type', access, success })
  wrongType() {
    return { count: '1', at: AT };
  }

  @Get('wrong-format')
  @Contract({ summary: 'Wrong format', access, success })
  wrongFormat() {
    return { count: 1, at: 'yesterday' };
  }

  @Get('one-more')
  @Contract({ summary: 'A member too many', access, success })
  oneMore() {
    return { count: 1, at: AT, colour: 'red' };
  }

  @Get('text')
  @Contract({ summary: 'Text', access, success })
  text(@Res() response: Response) {
    response.type('text/plain').send('1');
  }

  @Get('created')
  @Contract({ summary: 'Another status', access, success })
  created(@Res() response: Response) {
    response.status(201).json({ count: 1, at: AT });
  }

  @Get('unavailable')
  @Contract({ summary: 'A header too few', access, success })
  unavailable(@Res() response: Response) {
    response.status(503).json({ error: 'later', code: 'temporarily_unavailable' });
  }

  @Post('silent')
  @Contract({ summary: 'A body where none is described', access, success: { status: 200, description: 'Done' } })
  silent() {
    return { count: 1 };
  }
}

describe('DOCS: what the tests see of an application is held against its documentation', () => {
  let probe: ProbeApp;
  let exchanges: DocumentedExchanges;
  beforeEach(async () => {
    exchanges = new DocumentedExchanges();
    const watch = (app: NestExpressApplication) => {
      exchanges.watch(app);
      app.use('/extra', (_: unknown, response: Response) => response.json({ extra: true }));
    };
    probe = await startProbeApp({ controllers: [CountsController], watch });
  });
  afterEach(() => probe.close());

  it('finds nothing to say of what is as described, refusals of every kind included', async () => {
    await probe.http.get('/api/v1/counts/right').expect(200);
    await probe.http.head('/api/v1/counts/right').expect(200);
    await probe.http.get('/API/v1/counts/right/').expect(200);
    await probe.http.get('/api/v1/counts/right?colour=red').expect(400);
    await probe.http.get('/api/v1/counts/right').set('Authorization', 'Bearer wrong').expect(401);
    await probe.http.get('/api/v1/counts/right').set('Host', 'evil.example').expect(403);
    await probe.http.get('/api/v1/counts/nowhere').expect(404);
    await probe.http.put('/api/v1/counts/right').expect(404);
    await probe.http.post('/api/v1/counts/silent').set('Content-Type', 'text/plain').send('x').expect(415);
    await probe.http.get('/docs').expect(200);
    await probe.http.get('/docs-json').expect(200);
    await probe.http.get('/health/ready').expect(200);
    await sendRaw(probe.url, 'GET /api/v1/counts/%ZZ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    expect(exchanges.faults).toEqual([]);
  });

  it.each([
    ['get', '/api/v1/counts/wrong-type', '200: body/count must be integer'],
    ['get', '/api/v1/counts/wrong-format', '200: body/at must match format "date-time"'],
    ['get', '/api/v1/counts/one-more', '200: body must NOT have additional properties'],
    ['get', '/api/v1/counts/text', '200: the type text/plain is not described'],
    ['get', '/api/v1/counts/created', '201: the document does not have this status'],
    ['post', '/api/v1/counts/silent', '200: no body is described'],
    ['get', '/api/v1/counts/unavailable', '503: the header Retry-After is missing'],
    ['get', '/extra', '200: the document does not have this route'],
    ['post', '/api/v1/probe/fail/conflict', '409: the document does not have this status'],
  ] as const)('%s %s is found: %s', async (method, path, fault) => {
    await probe.http[method](path);
    await probe.http[method](path);
    // Once, however often it is seen.
    expect(exchanges.faults.map((text) => text.replace(/ \(in .*/, ''))).toEqual([
      `${method.toUpperCase()} ${path} → ${fault}`,
    ]);
  });
});
