import { Injectable } from '@nestjs/common';

/** Nothing for operators to choose: together, so that tests can make them small. */
@Injectable()
export class StreamSettings {
  /** How many events a client that connects again may have missed; some 500 bytes each. */
  readonly replayEvents: number = 5_000;
  /** Proxies commonly give a silent connection up after a minute, some after ten seconds. */
  readonly heartbeatMs: number = 8_000;
  /** For how many heartbeats a client may take nothing before it is dropped. */
  readonly patience: number = 4;
}
