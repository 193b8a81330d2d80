import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN_KEY, ApiHarness, type Created } from './api-harness.ts'

const ANSWER_WITHIN_MS = 5_000
const RUN_FOR_MS = 3_000
/** Set FC_SEED to see a failure again; it is printed with it. */
const SEED = process.env['FC_SEED'] === undefined ? {} : { seed: Number(process.env['FC_SEED']) }
const RUNS = { ...SEED, numRuns: 100_000, interruptAfterTimeLimit: RUN_FOR_MS, markInterruptAsFailure: false }

let api: ApiHarness
let instance: Created

beforeAll(async () => {
  api = await ApiHarness.start()
  instance = await api.createConnected('sandbox')
})
afterAll(() => api[Symbol.asyncDispose]())

const id = fc.oneof(
  fc.constantFrom(
    '',
    'x',
    '%00',
    '%zz',
    '%ff',
    '..',
    '%2e%2e%2f',
    'msg_1',
    'evt_1',
    'inst_1',
    'text',
    'redeliver',
    "' or 1=1 --",
  ),
  fc.string({ unit: 'binary', maxLength: 40 }).map(text => encodeURIComponent(text.toWellFormed())),
  fc.string({ maxLength: 40 }).map(text => text.replaceAll(/[\s\p{Cc}]/gu, '_')),
  fc.constant('').map(() => instance.id),
)
const query = fc.oneof(
  fc.constant(''),
  fc
    .array(
      fc.tuple(
        fc.constantFrom('limit', 'cursor', 'state', 'kind', 'to', 'since', 'until', 'search', '__proto__', 'x[]'),
        fc.oneof(
          fc.constantFrom('', '1', '0', '-1', '1e9', 'sent', 'pending', '%00', '%', '2026-01-01T00:00:00Z', 'MQ'),
          id,
        ),
      ),
      { maxLength: 4 },
    )
    .map(pairs => `?${pairs.map(pair => pair.join('=')).join('&')}`),
)
const path = fc
  .tuple(
    fc.constantFrom(
      '/v1/messages/text',
      '/v1/messages/:id',
      '/v1/instance',
      '/v1/webhooks/:id',
      '/v1/webhooks/:own',
      '/v1/:id',
      '/admin/v1/instances',
      '/admin/v1/instances/:id',
      '/admin/v1/instances/:own/connect',
      '/admin/v1/instances/:own/connection',
      '/admin/v1/instances/:own/webhook',
      '/admin/v1/instances/:own/messages',
      '/admin/v1/instances/:own/messages/:id',
      '/admin/v1/instances/:own/events',
      '/admin/v1/instances/:own/events/:id',
      '/admin/v1/instances/:own/events/:id/redeliver',
      '/admin/v1/instances/:own/events/redeliver',
      '/admin/v1/instances/:own/sandbox/incoming',
      '/admin/v1/instances/:id/:id',
      '/docs/:id',
      '/openapi.json',
      '/:id',
    ),
    id,
    query,
  )
  .map(
    ([pattern, value, search]) => pattern.replaceAll(':own', () => instance.id).replaceAll(':id', () => value) + search,
  )

const field = fc.oneof(
  fc.constantFrom<unknown>(
    '5511987654321',
    '',
    'x',
    null,
    0,
    true,
    [],
    {},
    '\ud800',
    '\u0000',
    'https://example.com',
    '1@g.us',
  ),
  fc.constantFrom<unknown>('2026-01-01T00:00:00Z', 'exhausted', 'sandbox', 'http://127.0.0.1', 1e308, -0),
  fc.string({ unit: 'binary' }),
  fc.jsonValue(),
)
const names = [
  'to',
  'text',
  'url',
  'name',
  'kind',
  'phone',
  'since',
  'state',
  'from',
  'group',
  '__proto__',
  'constructor',
]
const body = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.dictionary(fc.constantFrom(...names), field, { maxKeys: 6 }).map(value => JSON.stringify(value)),
  },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 100 }) },
  { weight: 1, arbitrary: fc.constantFrom('', 'null', '{', '[]', '"x"', '{"to":', '\ufeff{}') },
)
const headerValue = fc.string({ maxLength: 30 }).map(text => text.replaceAll(/[^\x20-\x7e]/g, '_'))
const headers = fc.record(
  {
    'content-type': fc.oneof(
      fc.constantFrom('application/json', 'text/plain', 'application/json;', ';', 'a/b;c=d'),
      headerValue,
    ),
    'x-idempotency-key': fc.oneof(fc.constantFrom('k', 'x'.repeat(256), ''), headerValue),
    'x-request-id': headerValue,
    'content-encoding': fc.constantFrom('gzip', 'identity', ''),
    accept: fc.constantFrom('text/html', 'text/event-stream', '*/*', ''),
    'accept-version': headerValue,
    authorization: fc.oneof(fc.constantFrom('Bearer', 'Basic x', 'Bearer x y'), headerValue),
  },
  { requiredKeys: [] },
)

test('nothing that a caller can say in proper HTTP gives a 5xx, a hang, or an error without its envelope', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'),
      path,
      headers,
      body,
      fc.boolean(),
      async (method, target, given, text, hasKey) => {
        const key = target.startsWith('/admin') ? ADMIN_KEY : instance.token
        const response = await fetch(api.url + target, {
          method,
          redirect: 'manual',
          signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
          headers: { 'content-type': 'application/json', ...(hasKey && { authorization: `Bearer ${key}` }), ...given },
          ...(method !== 'GET' && method !== 'HEAD' && { body: text }),
        })
        const answer = await response.text()
        expect(response.status).toBeLessThan(500)
        expect(response.headers.get('x-request-id')).toBeTruthy()
        if (response.status >= 400 && method !== 'HEAD') {
          expect(JSON.parse(answer)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } })
        }
      },
    ),
    RUNS,
  )
})

/** Writes the bytes, ends, and reads whatever comes until the server closes. */
function exchange(bytes: Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(api.port, '127.0.0.1')
    let received = ''
    socket.setTimeout(ANSWER_WITHIN_MS, () => {
      socket.destroy()
      reject(new Error('The server neither answered nor closed.'))
    })
    socket.setEncoding('latin1').on('data', text => {
      received += text
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(received))
    socket.end(bytes)
  })
}

const line = fc.oneof(
  fc.constantFrom(
    'Host: x',
    'Connection: close',
    'Content-Length: 5',
    'Transfer-Encoding: chunked',
    'Expect: 100-continue',
  ),
  fc.constantFrom(
    'Content-Length: 99999999999999999999',
    'Transfer-Encoding: gzip',
    'Upgrade: h2c',
    ' folded',
    'Content-Type: application/json',
  ),
  fc.constant('').map(() => `Authorization: Bearer ${instance.token}`),
  fc.string({ unit: 'binary', maxLength: 30 }),
)
const requestLine = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('GET', 'POST', 'PUT', 'TRACE', 'CONNECT', 'PRI', 'QUERY', 'get', ''),
      path,
      fc.constantFrom('HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', ''),
    )
    .map(parts => parts.join(' ')),
  fc.string({ unit: 'binary', maxLength: 40 }),
)
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc
    .tuple(requestLine, fc.array(line, { maxLength: 6 }), fc.constantFrom('\r\n', '\n', '\r'), body)
    .map(([first, lines, eol, rest]) => Buffer.from([first, ...lines, '', rest].join(eol))),
)

test('no bytes whatever give a 5xx, keep the connection hanging, or bring the server down', async () => {
  await fc.assert(
    fc.asyncProperty(bytes, async sent => {
      const received = await exchange(sent)
      for (const [, status] of received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)) expect(Number(status)).toBeLessThan(500)
    }),
    RUNS,
  )
  expect((await api.call({ path: '/healthz' })).status).toBe(200)
})

test('after all that, no bug stands in the log', () => {
  expect(api.logged.filter(({ msg }) => msg === 'request.failed')).toEqual([])
})
