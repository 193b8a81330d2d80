import type { Logger } from 'pino'
import type { Traces, TraceTarget } from './traces.ts'

export type { Traces } from './traces.ts'

/**
 * The only place that loads OpenTelemetry: a node without traces neither loads nor calls it.
 * @param target null: traces are off
 */
export async function openTraces(target: TraceTarget | null, version: string, logger: Logger): Promise<Traces | null> {
  if (target === null) return null
  const { OtlpTraces } = await import('./otlp-traces.ts')
  return new OtlpTraces(target, version, logger)
}
