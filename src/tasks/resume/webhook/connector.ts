import { Injectable } from '@nestjs/common';
import { connect as connectTcp } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';

export interface Target {
  /** Numeric, so that nothing is resolved any more. */
  readonly address: string;
  readonly port: number;
  /** The name that the certificate must be for; undefined for plain HTTP. An address is checked as an address. */
  readonly tlsName: string | undefined;
}

/** Opens connections. */
export abstract class Connector {
  /** A socket that is about to emit the event named by {@link readyEvent}, or an error. */
  abstract connect(target: Target): Socket;
}

export function readyEvent({ tlsName }: Target): 'connect' | 'secureConnect' {
  return tlsName === undefined ? 'connect' : 'secureConnect';
}

@Injectable()
export class SocketConnector extends Connector {
  /** Whom to trust besides what Node trusts: nobody. */
  protected readonly trust: Pick<ConnectionOptions, 'ca'> = {};

  connect({ address, port, tlsName }: Target): Socket {
    if (tlsName === undefined) return connectTcp({ host: address, port });
    // An address may not be sent as a server name; the certificate is then checked against `host`.
    const servername = tlsName === address ? '' : tlsName;
    return connectTls({ host: address, port, servername, ALPNProtocols: ['http/1.1'], ...this.trust });
  }
}
