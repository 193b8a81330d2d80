import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'

type OnResult = Parameters<SpanExporter['export']>[1]

/** Logs when the collector stops accepting spans, and when it accepts them again. The library logs neither. */
export class ReportingExporter implements SpanExporter {
  readonly #exporter: SpanExporter
  readonly #logger: Pick<Logger, 'warn' | 'info'>
  #isFailing = false

  constructor(exporter: SpanExporter, logger: Pick<Logger, 'warn' | 'info'>) {
    this.#exporter = exporter
    this.#logger = logger
  }

  export(spans: ReadableSpan[], onResult: OnResult): void {
    this.#exporter.export(spans, result => {
      const { error } = result
      if (error !== undefined && !this.#isFailing)
        this.#logger.warn({ reason: error.message, spans: spans.length }, 'traces.export_failed')
      if (error === undefined && this.#isFailing) this.#logger.info('traces.export_works')
      this.#isFailing = error !== undefined
      onResult(result)
    })
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown()
  }
}
