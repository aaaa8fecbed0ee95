import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Env } from '../config/env.js';
import type { LimitMetrics } from './limit-metrics.js';
import type { OpenReplies } from './open-replies.js';

/** Above the 60 s after which common proxies give up an idle connection, so that they close it and not we. */
const KEEP_ALIVE_MS = 65_000;

/** After so long without a byte the other machine is asked whether it is there; a wait says nothing for hours. */
const PROBE_AFTER_MS = 30_000;

/** How often the arrival of requests is looked at, at most. */
const CHECK_EVERY_MS = 5_000;

/**
 * What a connection may cost. A wait may last for hours, so how long a reply takes to begin, or is in coming, is not bounded: a
 * peer has so long to send its request whole (half of it for the head), and so long to take something of what is being sent
 * to it. One that does neither is cut; one to which there is nothing to send is left alone.
 */
export function endSlowPeers(server: Server, env: Env, replies: OpenReplies, limits: LimitMetrics): void {
  const { slowPeerTimeoutMs, maxConnections } = env;
  server.requestTimeout = slowPeerTimeoutMs;
  server.headersTimeout = Math.floor(slowPeerTimeoutMs / 2);
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  // Options of `createServer`, which Nest calls; Node reads them when the server listens, and when a request comes. One without
  // Host is refused by the allow-list, in words.
  Object.assign(server, {
    connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, Math.ceil(slowPeerTimeoutMs / 10)),
    requireHostHeader: false,
  });
  if (maxConnections > 0) server.maxConnections = maxConnections;
  server.on('drop', () => limits.refused('connections'));
  server.on('connection', (socket) => socket.setKeepAlive(true, PROBE_AFTER_MS));
  // Fires for a socket on which nothing has moved in either direction, a write that is under way included.
  server.timeout = slowPeerTimeoutMs;
  server.on('timeout', (socket: Socket) => {
    if (replies.on(socket).size === 0 || socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(slowPeerTimeoutMs);
  });
}
