import { Controller, Get, Header } from '@nestjs/common';
import { Registry } from 'prom-client';
import { NotFoundError } from '../common/domain-error.js';
import { Env } from '../config/env.js';
import { Contract } from '../http/contract.js';
import { Metrics } from '../observability/metrics.js';

const EXAMPLE = `# HELP clarification_response_timeout_total Responses whose budget was spent, by the phase that spent it.
# TYPE clarification_response_timeout_total counter
clarification_response_timeout_total{phase="claim"} 0
`;

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
    success: { status: 200, description: 'The text format', contentType: 'text/plain', example: EXAMPLE },
    errors: {
      unauthorized: 'a valid access token is required, sent as "Authorization: Bearer TOKEN"',
      not_found: 'no such route',
      temporarily_unavailable: 'the service is temporarily unavailable; send the same request again',
    },
  })
  show(): Promise<string> {
    if (!this.env.openMetricsAndDocs) throw new NotFoundError('no such route');
    return this.metrics.registry.metrics();
  }
}
