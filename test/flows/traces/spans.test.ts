import { randomBytes } from 'node:crypto'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, type StoreKind } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { OtlpCollector } from '../../otlp-collector.ts'
import { eventOf, Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const CONTACT = '5511987654321'
const TEXT = 'a text that no span may contain'
const PRODUCER = 4
const CLIENT = 3

const newTraceparent = (flags = '01') =>
  `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-${flags}`
const partsOf = (traceparent: unknown) => {
  const [, traceId = '', spanId = '', flags = ''] = String(traceparent).split('-')
  return { traceId, spanId, flags }
}

async function open(store: StoreKind, env: Record<string, string> = {}) {
  const collector = await OtlpCollector.listen()
  const database = await createDatabase(store, inject('postgresUrl'))
  const tracing = { OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }
  const service = await new Service({
    env: { ...database.env, SANDBOX: 'on', ...tracing, ...env },
  }).start()
  const receiver = await new Receiver().listen()
  onTestFinished(async () => {
    await service.dispose()
    await receiver.close()
    await collector.close()
    await database.dispose()
  })
  const { id, token } = await service.admin.createConnected()
  const instance = service.instance(id, token)
  await instance.setWebhook(`${receiver.url}?token=a-secret-of-the-consumer`)

  async function send(headers: Record<string, string> = {}, to = CONTACT): Promise<string> {
    const response = await fetch(`${service.url}/v1/messages/text`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ to, text: TEXT }),
    })
    expect(response.status).toBe(202)
    return ((await response.json()) as { data: { id: string } }).data.id
  }
  const postedAbout = (id: string) => receiver.requests.filter(request => eventOf(request).data.id === id)
  const untilRead = (id: string) =>
    until(`${id} to be read`, () => postedAbout(id).some(request => eventOf(request).event === 'message.read'))
  const spansOf = (traceId: string) => collector.spans.filter(span => span.traceId === traceId)
  return { collector, service, receiver, instanceId: id, instance, send, postedAbout, untilRead, spansOf }
}

describe.each(ONE_STORE)('%s', store => {
  test('a message makes one trace: the caller, accept, send, and the attempts of its webhooks', async () => {
    const { collector, send, postedAbout, untilRead, spansOf, instanceId, receiver } = await open(store)
    const caller = newTraceparent()
    const { traceId, spanId } = partsOf(caller)
    const id = await send({ traceparent: caller })
    await untilRead(id)
    await until('the spans to arrive', () => spansOf(traceId).length === 5)
    const [accept, ...others] = spansOf(traceId).toSorted((a, b) => a.startedAtMs - b.startedAtMs)
    expect(accept).toMatchObject({ name: 'accept', kind: PRODUCER, parentSpanId: spanId, failed: false })
    expect(accept?.attributes).toEqual({
      'messaging.system': 'pombal',
      'messaging.operation.name': 'accept',
      'messaging.operation.type': 'create',
      'messaging.destination.name': instanceId,
      'messaging.message.id': id,
    })
    expect(accept?.resource).toMatchObject({ 'service.name': 'pombal', 'service.version': expect.any(String) })
    for (const span of others) {
      expect(span.parentSpanId).toBe(accept?.spanId)
      expect(span.endedAtMs).toBeGreaterThanOrEqual(span.startedAtMs)
    }
    const send1 = others.find(({ name }) => name === 'send')
    expect(send1).toMatchObject({ kind: CLIENT, failed: false })
    expect(send1?.attributes).toMatchObject({ 'messaging.system': 'whatsapp', 'messaging.message.id': id })
    const attempts = others.filter(({ name }) => name === 'attempt')
    expect(attempts).toHaveLength(3)
    for (const attempt of attempts)
      expect(attempt).toMatchObject({
        kind: PRODUCER,
        attributes: {
          'messaging.message.conversation_id': id,
          'server.address': '127.0.0.1',
          'server.port': Number(new URL(receiver.url).port),
          'http.response.status_code': 200,
        },
      })
    // Each webhook names the span of its own attempt.
    const posted = postedAbout(id).map(({ headers }) => partsOf(headers['traceparent']))
    expect(posted.map(({ traceId }) => traceId)).toEqual([traceId, traceId, traceId])
    expect(posted.map(({ spanId }) => spanId).toSorted()).toEqual(attempts.map(({ spanId }) => spanId).toSorted())
    const everything = JSON.stringify(collector.spans)
    for (const secret of [TEXT, CONTACT, 'a-secret-of-the-consumer']) expect(everything).not.toContain(secret)
  })

  test('after kill -9 the webhook belongs to the same trace', async () => {
    const { service, receiver, collector, send, postedAbout, untilRead } = await open(store)
    receiver.answerWith({ kind: 'hang' })
    const caller = newTraceparent()
    const id = await send({ traceparent: caller })
    await until('a webhook to be in flight', () => receiver.requests.length === 1)
    await service.kill('SIGKILL')
    receiver.answerWith({ kind: 'status', status: 200 })
    receiver.release()
    await service.start()
    await untilRead(id)
    const traceIds = postedAbout(id).map(({ headers }) => partsOf(headers['traceparent']).traceId)
    expect(new Set(traceIds)).toEqual(new Set([partsOf(caller).traceId]))
    // The spans that were exported before and after the kill have one parent: the span of the call.
    await until('the attempts to arrive', () => collector.spans.filter(({ name }) => name === 'attempt').length >= 3)
    const parents = collector.spans.filter(span => span.name === 'attempt' && span.traceId === partsOf(caller).traceId)
    expect(new Set(parents.map(({ parentSpanId }) => parentSpanId)).size).toBe(1)
  })
})

test('a call without a trace context begins a trace', async () => {
  const { collector, send, postedAbout, untilRead, spansOf } = await open('sqlite')
  const id = await send()
  await untilRead(id)
  const { traceId } = partsOf(postedAbout(id)[0]?.headers['traceparent'])
  await until('the spans to arrive', () => spansOf(traceId).length === 5)
  expect(collector.spans.find(span => span.name === 'accept')).toMatchObject({ traceId, parentSpanId: null })
})

test("a call that its caller does not sample is not exported, and its webhooks carry the caller's trace context", async () => {
  const { collector, send, postedAbout, untilRead } = await open('sqlite')
  const [quiet, loud] = [newTraceparent('00'), newTraceparent()]
  const id = await send({ traceparent: quiet })
  await untilRead(id)
  expect(postedAbout(id).map(({ headers }) => headers['traceparent'])).toEqual([quiet, quiet, quiet])
  await untilRead(await send({ traceparent: loud }))
  await until('the other trace to arrive', () => collector.spans.length === 5)
  expect(collector.spans.every(({ traceId }) => traceId === partsOf(loud).traceId)).toBe(true)
})

test('a failed message and a failed attempt are failed spans', async () => {
  const { receiver, send, spansOf } = await open('sqlite', { WEBHOOK_RETRY_DELAYS_MS: '10' })
  receiver.answerWith(({ index }) => ({ kind: 'status', status: index === 0 ? 500 : 200 }))
  const caller = newTraceparent()
  await send({ traceparent: caller }, '15005550004')
  const { traceId } = partsOf(caller)
  await until('the spans to arrive', () => spansOf(traceId).length === 4)
  const named = (name: string) => spansOf(traceId).filter(span => span.name === name)
  expect(named('send')).toMatchObject([{ failed: true, attributes: { 'error.type': 'rejected_by_whatsapp' } }])
  expect(named('attempt').toSorted((a, b) => a.startedAtMs - b.startedAtMs)).toMatchObject([
    { failed: true, attributes: { 'http.response.status_code': 500, 'error.type': '500' } },
    { failed: false, attributes: { 'http.response.status_code': 200, 'http.request.resend_count': 1 } },
  ])
})

test('the collector gets the headers, the path and the resource of the settings', async () => {
  const { collector, service, send, untilRead } = await open('sqlite', {
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
    OTEL_SERVICE_NAME: 'messages',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging,team=a%20b',
  })
  await untilRead(await send())
  // A stop exports what is left.
  await service.kill('SIGTERM')
  expect(collector.spans.length).toBe(5)
  expect(collector.requests[0]).toMatchObject({
    path: '/v1/traces',
    headers: { authorization: 'Bearer of-the-collector', 'content-type': 'application/x-protobuf' },
  })
  expect(collector.spans[0]?.resource).toMatchObject({
    'service.name': 'messages',
    'deployment.environment.name': 'staging',
    team: 'a b',
  })
  expect(service.wholeOutput).not.toContain('of-the-collector')
})

const OUTAGES: [string, (collector: OtlpCollector) => unknown][] = [
  ['hangs', collector => collector.behaveAs('hang')],
  ['answers 503', collector => collector.behaveAs(503)],
  ['is gone', collector => collector.close()],
]
test.each(OUTAGES)('no message waits or is lost while the collector %s', async (_, break_) => {
  const { collector, service, send, receiver } = await open('sqlite', {
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
  })
  await break_(collector)
  const ids: string[] = []
  // More spans than the exporter keeps.
  for (let round = 0; round < 50; round += 1)
    ids.push(...(await Promise.all(Array.from({ length: 12 }, (_, index) => send({}, `55119876543${10 + index}`)))))
  // Each request is examined once: 600 conditions that each examine 1,800 requests would block this process.
  const unread = new Set(ids)
  let seen = 0
  await until('every message to be read', () => {
    for (; seen < receiver.requests.length; seen += 1) {
      const { event, data } = eventOf(receiver.requests[seen]!)
      if (event === 'message.read') unread.delete(String(data.id))
    }
    return unread.size === 0
  })
  const posted = receiver.requests.map(request => eventOf(request))
  expect(new Set(posted.map(({ event, data }) => `${event} ${data.id}`)).size).toBe(ids.length * 3)
  expect(receiver.requests.length).toBe(ids.length * 3)
  await until('the log to name the outage', () => service.logLines.some(({ msg }) => msg === 'traces.export_failed'))
  expect(service.logLines.filter(({ msg }) => msg === 'traces.export_failed')).toHaveLength(1)
  expect(await service.kill('SIGTERM')).toMatchObject({ code: 0 })
})

test('the log says when the collector takes spans again', async () => {
  const { collector, service, send } = await open('sqlite')
  collector.behaveAs(400)
  await send()
  const named = (name: string) => service.logLines.filter(({ msg }) => msg === name)
  await until('the outage', () => named('traces.export_failed').length === 1)
  collector.behaveAs('works')
  await until('its end', async () => {
    await send()
    return named('traces.export_works').length === 1
  })
})

test('with `OTEL_TRACES_EXPORTER=none` the collector gets no request', async () => {
  const { collector, service, send, untilRead } = await open('sqlite', { OTEL_TRACES_EXPORTER: 'none' })
  await untilRead(await send({ traceparent: newTraceparent() }))
  await service.kill('SIGTERM')
  expect(collector.requests).toEqual([])
})
