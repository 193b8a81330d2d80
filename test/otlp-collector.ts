import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import protobuf from 'protobufjs'

/** The parts of OTLP 1.7 that tests read, from `opentelemetry/proto/collector/trace/v1/trace_service.proto` and what it imports. */
const PROTO = `
  syntax = "proto3";
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }
  message Status { string message = 2; int32 code = 3; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
    fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9; Status status = 15;
  }`
const Request = protobuf.parse(PROTO).root.lookupType('ExportTraceServiceRequest')

interface KeyValue {
  key: string
  value: { stringValue?: string; intValue?: number; boolValue?: boolean; doubleValue?: number }
}

interface RawSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes?: KeyValue[]
  status?: { code?: number }
}

interface RawRequest {
  resourceSpans?: { resource?: { attributes?: KeyValue[] }; scopeSpans?: { spans?: RawSpan[] }[] }[]
}

/** A span as it was exported. IDs are hexadecimal. */
export interface CollectedSpan {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId: string | null
  startedAtMs: number
  endedAtMs: number
  attributes: Record<string, unknown>
  resource: Record<string, unknown>
  failed: boolean
}

/** `hang`: no answer ever. A number: this status. */
type Behaviour = 'works' | 'hang' | number

/** A collector on loopback that decodes what it gets over OTLP/HTTP with protobuf. */
export class OtlpCollector {
  readonly spans: CollectedSpan[] = []
  readonly requests: { path: string; headers: IncomingHttpHeaders }[] = []
  #behaviour: Behaviour = 'works'
  readonly #server: Server

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', chunk => chunks.push(chunk))
      request.on('end', () => {
        this.requests.push({ path: request.url ?? '', headers: request.headers })
        if (this.#behaviour === 'hang') return
        if (this.#behaviour === 'works') this.spans.push(...decode(Buffer.concat(chunks)))
        response
          .writeHead(this.#behaviour === 'works' ? 200 : this.#behaviour, { 'content-type': 'application/x-protobuf' })
          .end()
      })
    })
  }

  static async listen(): Promise<OtlpCollector> {
    const collector = new OtlpCollector()
    await new Promise<void>(resolve => collector.#server.listen(0, '127.0.0.1', resolve))
    return collector
  }

  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  behaveAs(behaviour: Behaviour): void {
    this.#behaviour = behaviour
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }
}

function decode(bytes: Buffer): CollectedSpan[] {
  const options = { bytes: String, longs: String } as const
  const { resourceSpans = [] } = Request.toObject(Request.decode(bytes), options) as RawRequest
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ spans = [] }) => spans.map(span => toSpan(span, recordOf(resource?.attributes)))),
  )
}

function toSpan(span: RawSpan, resource: Record<string, unknown>): CollectedSpan {
  const hex = (base64 = '') => Buffer.from(base64, 'base64').toString('hex')
  return {
    name: span.name,
    kind: span.kind,
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentSpanId: hex(span.parentSpanId) || null,
    startedAtMs: Number(span.startTimeUnixNano) / 1e6,
    endedAtMs: Number(span.endTimeUnixNano) / 1e6,
    attributes: recordOf(span.attributes),
    resource,
    failed: span.status?.code === 2,
  }
}

function recordOf(pairs: readonly KeyValue[] = []): Record<string, unknown> {
  const plain = ({ intValue, ...value }: KeyValue['value']) =>
    intValue === undefined ? Object.values(value)[0] : Number(intValue)
  return Object.fromEntries(pairs.map(({ key, value }) => [key, plain(value)]))
}
