import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import {
  type Attributes,
  type Context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import type { OpenSpan, SendTrace, Traceparent } from '../domain/trace-context.ts'
import { waitAtMost } from '../kit/deadline.ts'
import type { DueDelivery } from '../store/deliveries/deliveries.ts'
import type { NewMessage } from '../store/messages/messages.ts'
import { ReportingExporter } from './reporting-exporter.ts'
import type { Traces, TraceTarget } from './traces.ts'

/** The interval between exports. A crash loses at most the spans of one interval. */
const EXPORT_EVERY_MS = 1_000
/** While the collector is unavailable, spans beyond this number are dropped. */
const MAX_WAITING = 2_048
/** The longest time that a stop of the node waits for the last export. */
const CLOSE_WITHIN_MS = 1_000

/**
 * Spans by the semantic conventions of messaging: `accept` for the call, `send` for each attempt to send to WhatsApp, `attempt`
 * for each POST of a webhook. They contain IDs and the host of a webhook, but no text, number or path.
 */
export class OtlpTraces implements Traces {
  readonly #provider: TracerProvider
  readonly #tracer: Tracer

  constructor(target: TraceTarget, version: string, logger: Logger) {
    const { url, headers, timeoutMs, serviceName, resource, sampler, ratio } = target
    const exporter = new OTLPTraceExporter({
      url: url.href,
      headers: { ...headers },
      timeoutMillis: timeoutMs,
      userAgent: `Pombal/${version}`,
    })
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes({
        'service.version': version,
        'service.instance.id': randomUUID(),
        'host.name': hostname(),
        ...resource,
        'service.name': serviceName,
      }),
      sampler: samplerOf(sampler, ratio),
      spanProcessors: [
        new BatchSpanProcessor({
          exporter: new ReportingExporter(exporter, logger),
          scheduledDelayMillis: EXPORT_EVERY_MS,
          maxQueueSize: MAX_WAITING,
        }),
      ],
    })
    this.#tracer = this.#provider.getTracer('pombal', version)
  }

  accept({ instanceId, id }: Pick<NewMessage, 'instanceId' | 'id'>, caller: Traceparent | undefined): OpenSpan {
    return this.#begin(caller, SpanKind.PRODUCER, {
      'messaging.system': 'pombal',
      'messaging.operation.name': 'accept',
      'messaging.operation.type': 'create',
      'messaging.destination.name': instanceId,
      'messaging.message.id': id,
    })
  }

  sent({ instanceId, messageId, traceparent, durationMs, problem }: SendTrace): void {
    const attributes = {
      'messaging.system': 'whatsapp',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': instanceId,
      'messaging.message.id': messageId,
    }
    this.#begin(traceparent, SpanKind.CLIENT, attributes, Date.now() - durationMs).end(problem)
  }

  attempt({
    instanceId,
    endpointId,
    eventId,
    messageId,
    kind,
    attemptNumber,
    url,
    traceparent,
  }: DueDelivery): OpenSpan {
    const target = URL.parse(url)
    return this.#begin(traceparent ?? undefined, SpanKind.PRODUCER, {
      'messaging.system': 'webhook',
      'messaging.operation.name': 'attempt',
      'messaging.operation.type': 'send',
      'messaging.destination.name': endpointId,
      'messaging.message.id': eventId,
      ...(messageId !== null && { 'messaging.message.conversation_id': messageId }),
      'http.request.method': 'POST',
      ...(attemptNumber > 1 && { 'http.request.resend_count': attemptNumber - 1 }),
      ...(target && { 'server.address': target.hostname }),
      ...(target?.port && { 'server.port': Number(target.port) }),
      'pombal.instance.id': instanceId,
      'pombal.event.kind': kind,
    })
  }

  close(): Promise<void> {
    return waitAtMost(CLOSE_WITHIN_MS, this.#provider.shutdown())
  }

  #begin(parent: Traceparent | undefined, kind: SpanKind, attributes: Attributes, startTime?: number): OpenSpan {
    const name = String(attributes['messaging.operation.name'])
    const span = this.#tracer.startSpan(name, { kind, attributes, ...(startTime && { startTime }) }, contextOf(parent))
    return {
      // A span that is not recorded must not become the parent of later spans.
      traceparent: span.isRecording()
        ? traceparentOf(span.spanContext())
        : (parent ?? traceparentOf(span.spanContext())),
      end: (problem, status) => end(span, problem, status),
    }
  }
}

function end(span: Span, problem: string | null, status: number | null = null): void {
  if (status !== null) span.setAttribute('http.response.status_code', status)
  if (problem !== null) span.setAttribute('error.type', problem).setStatus({ code: SpanStatusCode.ERROR })
  span.end()
}

function contextOf(parent: Traceparent | undefined): Context {
  const [, traceId = '', spanId = '', flags] = parent?.split('-') ?? []
  const traceFlags = flags === '01' ? TraceFlags.SAMPLED : TraceFlags.NONE
  const context: SpanContext = { traceId, spanId, traceFlags, isRemote: true }
  return isSpanContextValid(context) ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT
}

function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): Traceparent {
  return `00-${traceId}-${spanId}-0${traceFlags & TraceFlags.SAMPLED}`
}

function samplerOf(name: string, ratio: number): Sampler {
  const root = name.endsWith('always_on')
    ? new AlwaysOnSampler()
    : name.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio)
  return name.startsWith('parentbased') ? new ParentBasedSampler({ root }) : root
}
