import { once } from 'node:events';
import { IncomingMessage, ServerResponse, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Express } from 'express';
import { PresetExpressAdapter } from '../../src/http/express-adapter.js';

describe('PresetExpressAdapter', () => {
  let server: Server | undefined;

  afterEach(() => {
    server?.close();
  });

  async function served(prepare: (app: Express, server: Server) => void): Promise<Response> {
    const adapter = new PresetExpressAdapter();
    adapter.initHttpServer();
    server = adapter.getHttpServer();
    prepare(adapter.getInstance<Express>(), server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/a/b`, {
      headers: { connection: 'close' },
    });
  }

  it('makes requests and responses that need no change of their prototypes in Express', async () => {
    const changes: boolean[] = [];
    await served((app, http) => {
      const born: object[] = [];
      http.prependListener('request', (request, response) => {
        born.push(Object.getPrototypeOf(request) as object, Object.getPrototypeOf(response) as object);
      });
      app.use((request, response) => {
        const now = [Object.getPrototypeOf(request) as object, Object.getPrototypeOf(response) as object];
        changes.push(...now.map((prototype, index) => prototype !== born[index]));
        response.end();
      });
    });
    expect(changes).toEqual([false, false]);
  });

  it('gives them all that Express and Node give them', async () => {
    const response = await served((app) => {
      app.get('/a/:id', (request, reply) => {
        const isNodes = request instanceof IncomingMessage && reply instanceof ServerResponse;
        reply.status(201).json({ id: request.params['id'], path: request.path, isNodes, own: request.app === app });
      });
    });
    expect(response.status).toBe(201);
    expect(await response.json()).toEqual({ id: 'b', path: '/a/b', isNodes: true, own: true });
  });
});
