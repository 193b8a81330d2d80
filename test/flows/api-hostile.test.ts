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
const OPERATIONS = [
  ['POST', '/v1/messages/text'],
  ['GET', '/v1/messages/:id'],
  ['GET', '/v1/instance'],
  ['GET', '/v1/webhooks/:id'],
  ['PUT', '/v1/webhooks/:own'],
  ['GET', '/v1/:id'],
  ['POST', '/admin/v1/instances'],
  ['GET', '/admin/v1/instances'],
  ['PATCH', '/admin/v1/instances/:own'],
  ['DELETE', '/admin/v1/instances/:id'],
  ['POST', '/admin/v1/instances/:own/connect'],
  ['POST', '/admin/v1/instances/:own/logout'],
  ['GET', '/admin/v1/instances/:own/connection'],
  ['GET', '/admin/v1/instances/:own/health'],
  ['PUT', '/admin/v1/instances/:own/webhook'],
  ['POST', '/admin/v1/instances/:own/webhook/secret'],
  ['GET', '/admin/v1/instances/:own/messages'],
  ['GET', '/admin/v1/instances/:own/messages/:id'],
  ['GET', '/admin/v1/instances/:own/events'],
  ['GET', '/admin/v1/instances/:own/events/:id'],
  ['POST', '/admin/v1/instances/:own/events/:id/redeliver'],
  ['POST', '/admin/v1/instances/:own/events/redeliver'],
  ['POST', '/admin/v1/instances/:own/sandbox/incoming'],
  ['POST', '/admin/v1/instances/:id/:id'],
  ['GET', '/docs/:id'],
  ['GET', '/openapi.json'],
  ['GET', '/:id'],
] as const

const otherMethod = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'HEAD', 'OPTIONS')
/** An operation with something in its place for every parameter; now and then with a method that it does not have. */
const call = fc
  .tuple(fc.constantFrom(...OPERATIONS), id, query, otherMethod, fc.integer({ min: 0, max: 9 }))
  .map(([[method, pattern], value, search, other, chance]) => ({
    method: chance === 0 ? other : method,
    target: pattern.replaceAll(':own', () => instance.id).replaceAll(':id', () => value) + search,
  }))
  // The instance has to be there for all that comes after.
  .filter(({ method, target }) => method !== 'DELETE' || !target.includes(instance.id))
const path = call.map(({ target }) => target)

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
const contentType = fc.oneof(
  { weight: 8, arbitrary: fc.constant('application/json') },
  { weight: 1, arbitrary: fc.constantFrom('text/plain', 'application/json;', ';', 'a/b;c=d') },
  { weight: 1, arbitrary: headerValue },
)
const headers = fc.record(
  {
    'content-type': contentType,
    'x-idempotency-key': fc.oneof(fc.constantFrom('k', 'x'.repeat(256), ''), headerValue),
    'x-request-id': headerValue,
    accept: fc.constantFrom('text/html', 'text/event-stream', '*/*', ''),
    'accept-version': headerValue,
    cookie: headerValue,
  },
  { requiredKeys: ['content-type'] },
)
/** Mostly the right key: behind it is where something could break. */
const authorization = fc.oneof(
  { weight: 18, arbitrary: fc.constant('right') },
  { weight: 1, arbitrary: fc.constant('none') },
  { weight: 1, arbitrary: fc.oneof(fc.constantFrom('Bearer', 'Basic x', 'Bearer x y'), headerValue) },
)

/** What the kinds of credentials stand for at this address. */
function credentials(kind: string, target: string): Record<string, string> {
  if (kind === 'none') return {}
  if (kind !== 'right') return { authorization: kind }
  return { authorization: `Bearer ${target.startsWith('/admin') ? ADMIN_KEY : instance.token}` }
}

test('nothing that a caller can say in proper HTTP gives a 5xx, a hang, or an error without its envelope', async () => {
  await fc.assert(
    fc.asyncProperty(call, headers, body, authorization, async ({ method, target }, given, text, kind) => {
      const response = await fetch(api.url + target, {
        method,
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        headers: { ...given, ...credentials(kind, target) },
        ...(method !== 'GET' && method !== 'HEAD' && { body: text }),
      })
      const answer = await response.text()
      expect(response.status).toBeLessThan(500)
      expect(response.headers.get('x-request-id')).toBeTruthy()
      if (response.status >= 400 && method !== 'HEAD') {
        expect(JSON.parse(answer)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } })
      }
    }),
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
