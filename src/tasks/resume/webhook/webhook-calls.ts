import { Injectable } from '@nestjs/common';
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { Clock } from '../../../common/clock.js';
import type { Deadline } from '../../../common/deadline.js';
import type { EndSignal } from '../../../common/end-signal.js';
import { VERSION } from '../../../common/version.js';
import { Env } from '../../../config/env.js';
import { ResumePort } from '../resume.port.js';
import type { AgentCall, CallResult } from '../resume.port.js';
import { Connector, readyEvent } from './connector.js';
import type { Target } from './connector.js';
import { exchange } from './exchange.js';
import { CallFailure, failureCode } from './failure-code.js';
import { NameResolver } from './name-resolver.js';
import { isPublicAddress } from './public-address.js';
import { hostOf, readWebhookUrl } from './webhook-url.js';

/** Of a name with many addresses, how many are tried, and how long each but the last. */
const MAX_ADDRESSES = 4;
const CONNECT_MS = 3_000;

/**
 * Calls an agent's webhook (4.3), signed by the Standard Webhooks scheme. Keeps nothing between calls: one connection
 * each, to an address that has been looked at; nothing is resolved between the look and the connection. Redirects are
 * not followed: a 3xx is a status like others that is not 2xx.
 */
@Injectable()
export class WebhookCalls extends ResumePort {
  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly resolver: NameResolver,
    private readonly connector: Connector,
  ) {
    super();
  }

  async call(call: AgentCall, deadline: Deadline, abort?: EndSignal): Promise<CallResult> {
    const stop = new AbortController();
    const aborted = () => stop.abort(new CallFailure('aborted'));
    const timer = setTimeout(() => stop.abort(new CallFailure('timeout')), deadline.remainingMs);
    abort?.addEventListener('abort', aborted);
    try {
      if (abort?.aborted === true) throw new CallFailure('aborted');
      if (deadline.isOver) throw new CallFailure('timeout');
      const url = this.urlOf(call);
      const headers = { ...this.signedHeaders(call), host: url.host };
      const socket = await this.open(url, stop.signal);
      return await exchange(
        socket,
        { path: `${url.pathname}${url.search}`, headers, body: Buffer.from(call.body) },
        stop.signal,
      );
    } catch (error) {
      // The exchange does not throw, and before it nothing was sent.
      return { kind: 'not-delivered', reason: failureCode(error) };
    } finally {
      clearTimeout(timer);
      abort?.removeEventListener('abort', aborted);
    }
  }

  private urlOf({ url }: AgentCall): URL {
    const read = readWebhookUrl(url, { allowPrivate: this.env.webhookAllowPrivate });
    if ('problem' in read) throw new CallFailure('url_refused');
    return read.url;
  }

  private signedHeaders({ id, secret, body }: AgentCall) {
    const now = new Date(this.clock.now());
    let signature: string;
    try {
      signature = new Webhook(secret).sign(id, now, body);
    } catch {
      throw new CallFailure('secret_unusable');
    }
    return {
      'content-type': 'application/json',
      'user-agent': `clarion/${VERSION}`,
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': signature,
    };
  }

  /** A connection to the first address that takes one. */
  private async open(url: URL, stop: AbortSignal): Promise<Socket> {
    const host = hostOf(url);
    const isTls = url.protocol === 'https:';
    const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
    const found = isIP(host) === 0 ? await unlessStopped(this.resolver.addressesOf(host, stop), stop) : [host];
    // One bad address refuses all: an honest name has none, and which one is used is not for its owner to try out.
    for (const address of found) this.refusePrivate(address);
    const addresses = found.slice(0, MAX_ADDRESSES);
    let failure: unknown = new CallFailure('no_address');
    for (const [index, address] of addresses.entries()) {
      const patience = index === addresses.length - 1 ? undefined : CONNECT_MS;
      try {
        return await this.connect({ address, port, tlsName: isTls ? host : undefined }, stop, patience);
      } catch (error) {
        if (stop.aborted) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  private refusePrivate(address: string): void {
    const isAllowed = this.env.webhookAllowPrivate ? isIP(address) !== 0 : isPublicAddress(address);
    if (!isAllowed) throw new CallFailure('address_refused');
  }

  private connect(target: Target, stop: AbortSignal, patience: number | undefined): Promise<Socket> {
    return new Promise((resolve, reject) => {
      this.refusePrivate(target.address);
      const socket = this.connector.connect(target);
      const settle = (failure?: Error) => {
        clearTimeout(timer);
        stop.removeEventListener('abort', stopped);
        socket.off('close', closed);
        if (failure === undefined) return resolve(socket);
        socket.destroy();
        reject(failure);
      };
      const stopped = () => settle(stop.reason as CallFailure);
      const closed = () => settle(new CallFailure('closed'));
      const timer =
        patience === undefined ? undefined : setTimeout(() => settle(new CallFailure('connect_timeout')), patience);
      // Stays: an error with nobody listening would end the process.
      socket.on('error', settle);
      socket.once(readyEvent(target), () => settle());
      socket.once('close', closed);
      stop.addEventListener('abort', stopped, { once: true });
    });
  }
}

/** Rejects as soon as `stop` is aborted, whether or not the work notices. */
function unlessStopped<T>(work: Promise<T>, stop: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopped = () => reject(stop.reason as Error);
    if (stop.aborted) stopped();
    else stop.addEventListener('abort', stopped, { once: true });
    work.then(resolve, reject).finally(() => stop.removeEventListener('abort', stopped));
  });
}
