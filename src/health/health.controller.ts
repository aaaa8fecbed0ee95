import { Controller, Get } from '@nestjs/common';
import { HealthCheckService, HealthIndicatorService } from '@nestjs/terminus';
import type { HealthCheckResult } from '@nestjs/terminus';
import { Type } from 'typebox';
import { Deadline } from '../common/deadline.js';
import { TemporarilyUnavailableError } from '../common/domain-error.js';
import { Contract } from '../http/contract.js';
import { Reader } from '../persistence/unit-of-work.js';
import { Readiness } from './readiness.js';

const PING_MS = 2_000;
const HEALTHY = Type.Object({ status: Type.Literal('ok') }, { additionalProperties: false });

@Controller('health')
export class HealthController {
  private pinging: Promise<void> | undefined;

  constructor(
    private readonly checks: HealthCheckService,
    private readonly indicators: HealthIndicatorService,
    private readonly readiness: Readiness,
    private readonly reader: Reader,
  ) {}

  @Get('live')
  @Contract({
    summary: 'Whether the process runs',
    tag: 'Health',
    access: { kind: 'open' },
    success: { status: 200, description: 'It does', schema: HEALTHY, example: { status: 'ok' } },
  })
  live(): { status: 'ok' } {
    return { status: 'ok' };
  }

  @Get('ready')
  @Contract({
    summary: 'Whether requests are admitted',
    description:
      'Not before start-up recovery is done, not while stopping, and not while the database is out of reach.',
    tag: 'Health',
    access: { kind: 'open' },
    success: { status: 200, description: 'They are', schema: HEALTHY, example: { status: 'ok' } },
    errors: { temporarily_unavailable: 'not ready: database is down' },
  })
  async ready(): Promise<{ status: 'ok' }> {
    try {
      await this.checks.check([() => this.admission(), () => this.database()]);
    } catch (cause) {
      throw new TemporarilyUnavailableError(`not ready: ${failing(cause).join(', ')}`, { cause });
    }
    return { status: 'ok' };
  }

  private admission() {
    const reason = this.readiness.notReadyBecause;
    const indicator = this.indicators.check('server');
    return reason === undefined ? indicator.up() : indicator.down({ reason });
  }

  private database() {
    return this.indicators.check('database').attempt(() => this.ping());
  }

  /** Whoever asks meanwhile shares it: nobody needs a token for this, and no limit is on it. */
  private ping(): Promise<void> {
    this.pinging ??= this.reader.ping(Deadline.after(PING_MS)).finally(() => (this.pinging = undefined));
    return this.pinging;
  }
}

/** The names of what failed: Terminus throws an exception whose response holds its result. */
function failing(error: unknown): string[] {
  const result = (error as { getResponse?: () => HealthCheckResult }).getResponse?.();
  return Object.entries(result?.error ?? {}).map(([name, details]) => {
    const reason: unknown = details?.['reason'];
    return `${name} is ${typeof reason === 'string' ? reason : 'down'}`;
  });
}
