import type { Server } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { BeforeApplicationShutdown, OnModuleDestroy } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Env } from '../config/env.js';
import { Log } from '../observability/log.js';

const POLL_MS = 20;

/**
 * Stopping, in Nest's order. `onModuleDestroy`: no new connection is accepted, and features end what holds a request
 * open (waits, streams). `beforeApplicationShutdown`: requests under way finish, within SHUTDOWN_GRACE_MS; then their
 * connections are cut. `onApplicationShutdown`: only now may a database close.
 */
@Injectable()
export class HttpDrain implements OnModuleDestroy, BeforeApplicationShutdown {
  private closed: Promise<void> | undefined;

  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly env: Env,
    private readonly log: Log,
  ) {}

  get isStopping(): boolean {
    return this.closed !== undefined;
  }

  onModuleDestroy(): void {
    const server = this.server();
    this.closed ??= server.listening ? new Promise((resolve) => server.close(() => resolve())) : Promise.resolve();
  }

  async beforeApplicationShutdown(): Promise<void> {
    const server = this.server();
    // A connection that becomes idle after `close()` would otherwise live until its keep-alive ends.
    const reaper = setInterval(() => server.closeIdleConnections(), POLL_MS);
    const guillotine = setTimeout(() => {
      this.log.warn('server.requests_cut', { grace_ms: this.env.shutdownGraceMs });
      server.closeAllConnections();
    }, this.env.shutdownGraceMs);
    await this.closed;
    clearInterval(reaper);
    clearTimeout(guillotine);
  }

  private server(): Server {
    return this.adapterHost.httpAdapter.getHttpServer() as Server;
  }
}
