import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { StoreUnavailable } from '../../../src/store/errors.ts'
import type { Store } from '../../../src/store/store.ts'
import { until } from '../../until.ts'
import { ADMIN_KEY, ApiHarness } from './harness.ts'

const BODY = { to: '5511987654321', text: 'x' }

test('when the store fails, every call is 503 with Retry-After, and the log has the reason', async () => {
  let down = false
  /** While the store is down, every method of each of its parts throws. */
  function failing<T extends object>(part: T): T {
    return new Proxy(part, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (down) return Promise.reject(new StoreUnavailable('the disk is full'))
          return Reflect.apply(value, target, args)
        }
      },
    })
  }
  await using api = await ApiHarness.start({
    store: store => ({
      admission: failing(store.admission),
      instances: failing(store.instances),
      messages: failing(store.messages),
    }),
    options: { isReady: () => !down },
  })
  const instance = await api.createConnected()
  down = true
  const answers = [
    await api.send(instance, BODY),
    await api.call({ path: '/v1/instance', key: instance.token }),
    await api.call({ path: '/v1/nope', key: instance.token }),
    await api.admin('GET', '/instances'),
    await api.admin('POST', '/instances'),
    await api.call({ path: '/readyz' }),
  ]
  for (const answer of answers) {
    expect([answer.status, answer.body.error.code]).toEqual([503, 'service_unavailable'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(answer.text).not.toContain('disk')
  }
  const id = answers[0]!.headers.get('x-request-id')
  const line = api.logged.find(({ requestId, msg }) => requestId === id && msg === 'request.unavailable')
  expect(JSON.stringify(line)).toContain('the disk is full')
  expect((await api.call({ path: '/healthz' })).status).toBe(200)

  down = false
  expect((await api.send(instance, BODY)).status).toBe(202)
  expect((await api.call({ path: '/readyz' })).body).toEqual({ status: 'ready' })
})

test('a bug is 500 internal_error: the details are in the log under the request ID, not in the answer', async () => {
  await using api = await ApiHarness.start({
    store: store => ({
      messages: Object.assign(Object.create(store.messages), {
        accept: () => Promise.reject(new TypeError('secret detail of the bug')),
      }) as Store['messages'],
    }),
  })
  const instance = await api.createConnected()
  const answer = await api.send(instance, BODY)
  expect([answer.status, answer.body.error.code]).toEqual([500, 'internal_error'])
  expect(answer.text).not.toContain('secret detail')
  const id = answer.headers.get('x-request-id')
  const line = api.logged.find(({ requestId, msg }) => requestId === id && msg === 'request.failed')
  expect(JSON.stringify(line)).toContain('secret detail of the bug')
  expect(answer.headers.get('ratelimit-limit')).not.toBeNull()
})

test('an answer that violates its schema is a 500 in the envelope', async () => {
  await using api = await ApiHarness.start({
    store: store => ({
      instances: Object.assign(Object.create(store.instances), {
        find: async () => ({ id: 'inst_a', name: 'x', kind: 'whatsapp', reason: '', phone: null }),
      }) as Store['instances'],
    }),
  })
  const answer = await api.admin('GET', '/instances/inst_a')
  expect([answer.status, answer.body.error.code]).toEqual([500, 'internal_error'])
})

test('during shutdown, requests in flight finish, and their answers announce the end of the connection', async () => {
  let release: (() => void) | undefined
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  let reached = false
  const api = await ApiHarness.start({
    store: store => ({
      messages: Object.assign(Object.create(store.messages), {
        accept: async (...args: Parameters<Store['messages']['accept']>) => {
          reached = true
          await held
          return store.messages.accept(...args)
        },
      }) as Store['messages'],
    }),
  })
  const instance = await api.createConnected()
  const inFlight = api.send(instance, BODY)
  await until('the call to be in flight', () => reached)

  const closed = api[Symbol.asyncDispose]()
  await until('the shutdown to begin', () => !api.server.server.listening)
  release?.()
  const { status, headers } = await inFlight
  expect([status, headers.get('connection')]).toEqual([202, 'close'])
  await closed
})

test('during shutdown, new requests get 503, and their answers announce the end of the connection', async () => {
  const api = await ApiHarness.start()
  const instance = await api.createConnected()
  const body = JSON.stringify(BODY)
  const requests = [
    'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n',
    `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n` +
      `Content-Type: application/json\r\nAuthorization: Bearer ${instance.token}\r\n\r\n${body}`,
  ]
  // A request that has begun keeps its connection from being closed as idle.
  const callers = await Promise.all(requests.map(request => begin(api, request.slice(0, 10))))
  const closed = api[Symbol.asyncDispose]()
  callers.forEach((caller, index) => void caller.socket.write(requests[index]!.slice(10)))
  for (const { answer } of callers) {
    expect(await answer).toMatch(/^HTTP\/1\.1 503 /)
    expect((await answer).toLowerCase()).toContain('\r\nconnection: close\r\n')
    expect((await answer).toLowerCase()).toContain('\r\nretry-after: 2\r\n')
    expect(await answer).toContain('"code":"service_unavailable"')
  }
  await closed
})

/** Resolves when the server has read `text`. `answer` is everything that the server sends until it closes. */
async function begin(api: ApiHarness, text: string): Promise<{ socket: Socket; answer: Promise<string> }> {
  const socket = connect(api.port, '127.0.0.1')
  let received = ''
  socket.setEncoding('utf8').on('data', data => {
    received += data
  })
  const answer = new Promise<string>(resolve => socket.once('close', () => resolve(received)))
  await new Promise<void>(resolve => socket.write(text, () => resolve()))
  // By the time this call is answered, the server has read `text`.
  await api.call({ path: '/healthz' })
  return { socket, answer }
}

test('/readyz is 503 while the service cannot accept, and concurrent callers share one check', async () => {
  let looks = 0
  let callers = 0
  const isReady = async () => {
    looks += 1
    await until('all callers to have asked', () => callers === 20)
    return false
  }
  await using api = await ApiHarness.start({ options: { isReady } })
  api.server.server.on('request', () => {
    callers += 1
  })
  const answers = await Promise.all(Array.from({ length: 20 }, () => api.call({ path: '/readyz' })))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
  expect(looks).toBeLessThan(20)
  expect((await api.call({ path: '/admin/v1/instances', key: ADMIN_KEY })).status).toBe(200)
})

test('after a suspension of the machine, a message gets the time that the clock has once it is right again', async () => {
  let offMs = 0
  await using api = await ApiHarness.start({
    store: store => ({
      clock: {
        ...store.clock,
        settled: async () => {
          await store.ping()
          offMs = 0
        },
      },
    }),
    options: { now: () => Date.now() - offMs },
  })
  const instance = await api.createConnected()
  const startedAt = Date.now()
  for (const send of [
    () => api.send(instance, BODY),
    () => api.admin('POST', `/instances/${instance.id}/messages`, BODY),
  ]) {
    offMs = 3_600_000
    expect((await send()).status).toBe(202)
  }
  const queued = await api.store.messages.listQueued(instance.id, 10)
  expect(queued.map(({ createdAt }) => createdAt >= startedAt)).toEqual([true, true])
})
