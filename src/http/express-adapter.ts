import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { Express } from 'express';

/**
 * Requests and responses are born with the prototypes that Express would otherwise give each of them when it arrives. An
 * object whose prototype is changed gets a hidden class to itself: 2 KiB for as long as the request lasts, which is hours
 * for those that wait, and no inline cache fits any of them, so that all that is done with a request costs twice as much.
 */
export class PresetExpressAdapter extends ExpressAdapter {
  override initHttpServer(): void {
    const app = this.getInstance<Express>();
    class Request extends IncomingMessage {}
    // We give no validators, so nothing can be "not modified", which Express would answer to `If-None-Match: *` all the same.
    Object.defineProperty(app.request, 'fresh', { get: () => false });
    class Response extends ServerResponse<Request> {}
    Object.setPrototypeOf(Request.prototype, app.request);
    Object.setPrototypeOf(Response.prototype, app.response);
    // What Express sets as the prototype is there already, which it finds out for next to nothing.
    Object.assign(app, { request: Request.prototype, response: Response.prototype });
    this.setHttpServer(createServer({ IncomingMessage: Request, ServerResponse: Response }, app));
  }
}
