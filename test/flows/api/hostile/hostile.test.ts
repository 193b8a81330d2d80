import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../deadlines.ts'
import { ADMIN_KEY, ApiHarness, type Created } from '../harness.ts'
import { type HostileCall, hostileCalls } from './requests.ts'

const AT_ONCE = 16
/** `npm run test:hostile` sets a larger number. */
const WANTED = Number(process.env['HOSTILE_REQUESTS'] ?? 480)
const LONG_RUN_MS = 30 * 60_000
/** To reproduce a failure, set FC_SEED to the seed that is printed with it. */
const SEED = process.env['FC_SEED'] === undefined ? {} : { seed: Number(process.env['FC_SEED']) }
const RUNS = { ...SEED, numRuns: WANTED }

let api: ApiHarness
let instance: Created
/** Data of another instance. `instance` must never see any of it. */
let other: Created
const SECRETS = ['confidential-text-of-another', 'confidential.example', 'Confidential Ltd']
const otherSecrets: string[] = []

beforeAll(async () => {
  api = await ApiHarness.start()
  instance = await api.createConnected('sandbox')
  other = await api.createConnected('sandbox')
  await api.admin('PATCH', `/instances/${other.id}`, { name: SECRETS[2] })
  const { body: webhook } = await api.admin('PUT', `/instances/${other.id}/webhook`, { url: `https://${SECRETS[1]}/x` })
  otherSecrets.push(...SECRETS, other.token, webhook.data.secret)
})
afterAll(() => api[Symbol.asyncDispose]())

/** The headers for the credentials of this call. The right key depends on its path. */
function credentials({ authorization, target }: HostileCall): Record<string, string> {
  if (authorization === 'none') return {}
  if (authorization !== 'right') return { authorization }
  return { authorization: `Bearer ${/^.(admin|metrics)/.test(target) ? ADMIN_KEY : instance.token}` }
}

async function make(call: HostileCall): Promise<void> {
  const { method, target, headers, body } = call
  const response = await fetch(api.url + target, {
    method,
    redirect: 'manual',
    signal: AbortSignal.timeout(CONDITION_WITHIN_MS),
    headers: { ...headers, ...credentials(call) },
    ...(method !== 'GET' && method !== 'HEAD' && { body }),
  })
  expect(response.status).toBeLessThan(500)
  expect(response.headers.get('x-request-id')).toBeTruthy()
  // The stream stays open until its reader leaves.
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) return response.body?.cancel()
  const answer = await response.text()
  if (response.status >= 400 && method !== 'HEAD') {
    const requestId = response.headers.get('x-request-id')
    expect(JSON.parse(answer)).toMatchObject({
      error: { code: expect.any(String), message: expect.any(String), requestId },
    })
  }
  if (!target.startsWith('/admin')) for (const secret of otherSecrets) expect(answer).not.toContain(secret)
}

test(
  'no request generated from the OpenAPI document causes a 5xx, a hang or an error without its envelope, or reveals another tenant’s data',
  async () => {
    const sent = await api.send(other, { to: '5511987654321', text: SECRETS[0] })
    await api.progress(other, sent.body.data.id, 'sent')
    const mine = await api.send(instance, { to: '5511987654321', text: 'mine' })
    const { body: events } = await api.admin('GET', `/instances/${other.id}/events`)
    const ids = [instance.id, other.id, mine.body.data.id, sent.body.data.id, events.data[0].id]
    const calls = hostileCalls(api.server.swagger() as never, {
      ownId: instance.id,
      keptIds: [instance.id, other.id],
      ids,
    })
    let made = 0
    const together = fc.asyncProperty(fc.array(calls, { minLength: AT_ONCE, maxLength: AT_ONCE }), async batch => {
      await Promise.all(batch.map(make))
      made += batch.length
    })
    await fc.assert(together, { ...RUNS, numRuns: Math.ceil(WANTED / AT_ONCE) })
    process.stdout.write(`${made} requests generated from the OpenAPI document\n`)
    expect(made).toBeGreaterThanOrEqual(WANTED)
    const { body: kept } = await api.call({ path: `/v1/messages/${sent.body.data.id}`, key: other.token })
    expect(kept.data).toMatchObject({ text: SECRETS[0], status: 'sent' })
  },
  LONG_RUN_MS,
)

/** Writes the bytes, half-closes, and reads until the server closes the connection. */
function exchange(bytes: Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(api.port, '127.0.0.1')
    let received = ''
    socket.setTimeout(CONDITION_WITHIN_MS, () => {
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
const path = fc.constantFrom(
  '/v1/messages/text',
  '/v1/instance',
  '/admin/v1/instances',
  '/docs/',
  '/',
  '*',
  'http://x/v1',
)
const body = fc.oneof(fc.json(), fc.string({ unit: 'binary', maxLength: 100 }), fc.constantFrom('', '{"to":'))
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

test(
  'no sequence of bytes causes a 5xx, a hanging connection or a crash',
  async () => {
    await fc.assert(
      fc.asyncProperty(bytes, async sent => {
        const received = await exchange(sent)
        for (const [, status] of received.matchAll(/HTTP\/1\.1 (\d{3}) /g)) expect(Number(status)).toBeLessThan(500)
      }),
      RUNS,
    )
    expect((await api.call({ path: '/healthz' })).status).toBe(200)
  },
  LONG_RUN_MS,
)

test('the log reports no internal error afterwards', () => {
  expect(api.logged.filter(({ msg }) => msg === 'request.failed')).toEqual([])
})
