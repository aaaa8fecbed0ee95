import { Controller, Get, Header } from '@nestjs/common';
import { Registry } from 'prom-client';
import { NotFoundError } from '../common/domain-error.js';
import { Env } from '../config/env.js';
import { Contract } from '../http/contract.js';
import { Metrics } from './metrics.js';

@Controller('metrics')
export class MetricsController {
  constructor(
    private readonly metrics: Metrics,
    private readonly env: Env,
  ) {}

  @Get()
  @Header('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE)
  @Contract({
    summary: 'Metrics for Prometheus',
    description: 'Exists while OPEN_METRICS_AND_DOCS says so: by default on a loopback address only.',
    tag: 'Health',
    access: { kind: 'open' },
    success: { status: 200, description: 'The text format', contentType: 'text/plain' },
    errors: ['not_found'],
  })
  show(): Promise<string> {
    if (!this.env.openMetricsAndDocs) throw new NotFoundError('no such route');
    return this.metrics.registry.metrics();
  }
}
