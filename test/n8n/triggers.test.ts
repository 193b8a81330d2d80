import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { until } from '../until.ts'
import { activate, PACKAGE, webhookTrigger } from './contexts.ts'

/** The compiled triggers against answers that a test chooses. */

const IS_BUILT = ['node_modules/n8n-workflow', 'dist/nodes/PombalTrigger/PombalTrigger.node.js'].every(path =>
  existsSync(join(PACKAGE, path)),
)
const ID = 'inst_a'
const CURSOR = '7.p9s1t4w6'
const PARAMETERS = { events: ['message.received', 'message.failed'], startWith: 'latest' }

/** How a long poll is answered. `hold`: not at all. */
type Step = 'event' | 'hold' | { status: number; code: string; retryAfter: number }

interface Poll {
  at: number
  isClosed: boolean
}

const TOO_MANY_READERS = { status: 429, code: 'too_many_readers', retryAfter: 1 }

/** An instance whose long polls get the steps, one after another. The last one is repeated. Other calls succeed until `isFull` is set. */
async function startFeed(...steps: Step[]) {
  const polls: Poll[] = []
  const answer = (response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://feed')
    if (pathname === '/v1/instance') return answer(response, 200, { data: { id: ID } })
    const refuse = ({ status, code, retryAfter }: Exclude<Step, string>) =>
      answer(response, status, { error: { code, message: 'Refused.' } }, { 'retry-after': String(retryAfter) })
    if (!searchParams.has('wait')) {
      return feed.isFull ? refuse(TOO_MANY_READERS) : answer(response, 200, { data: [], nextCursor: CURSOR })
    }
    const poll = { at: performance.now(), isClosed: false }
    response.once('close', () => {
      poll.isClosed = true
    })
    const step = steps[Math.min(polls.push(poll), steps.length) - 1]!
    if (step === 'hold') return
    if (step === 'event') {
      const event = { id: 'evt_a', cursor: CURSOR, body: { event: 'message.read' } }
      return answer(response, 200, { data: [event], nextCursor: CURSOR })
    }
    return refuse(step)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const feed = { polls, isFull: false, credentials: { baseUrl: `http://127.0.0.1:${port}`, token: 'x' } }
  return feed
}

describe.skipIf(!IS_BUILT)('the trigger of the feed', () => {
  test('polls every three seconds at most, and waits for Retry-After', async () => {
    const refusal = { status: 429, code: 'rate_limit_exceeded', retryAfter: 6 }
    const { polls, credentials } = await startFeed('event', 'event', refusal, 'hold')
    const trigger = await activate({ credentials, parameters: PARAMETERS, staticData: {}, onRun() {} })
    onTestFinished(() => trigger.stop())
    await until('the last poll', () => polls.length === 4)
    const [first, second, third, fourth] = polls.map(({ at }) => at) as [number, number, number, number]
    // A timer and the network may be a little early.
    expect(second - first).toBeGreaterThan(2_900)
    expect(third - second).toBeGreaterThan(2_900)
    expect(fourth - third).toBeGreaterThan(5_900)
  })

  test('closes its poll when it is stopped', async () => {
    const { polls, credentials } = await startFeed('hold')
    const trigger = await activate({ credentials, parameters: PARAMETERS, staticData: {}, onRun() {} })
    await until('the poll', () => polls.length === 1)
    await trigger.stop()
    await until('its end', () => polls[0]!.isClosed)
    expect(polls).toHaveLength(1)
  })

  test('ends with a remedy if others read the feed', async () => {
    const { polls, credentials } = await startFeed(TOO_MANY_READERS)
    const errors: Error[] = []
    const onError = (error: Error) => errors.push(error)
    await activate({ credentials, parameters: PARAMETERS, staticData: {}, onRun() {}, onError })
    await until('the error', () => errors.length === 1)
    expect(polls).toHaveLength(3)
    expect(errors[0]).toMatchObject({
      name: 'NodeOperationError',
      message: expect.stringMatching(/^Five others already read .* "Execute Workflow"/),
    })
  })

  test.each([{}, { instanceId: ID, cursor: CURSOR }])(
    'is not activated while others read the feed, with %j stored',
    async staticData => {
      const feed = await startFeed('hold')
      feed.isFull = true
      const options = { credentials: feed.credentials, parameters: PARAMETERS, staticData, onRun() {} }
      await expect(activate(options)).rejects.toMatchObject({
        name: 'NodeOperationError',
        message: expect.stringMatching(/^Five others/),
      })
      feed.isFull = false
      const trigger = await activate(options)
      await until('the poll', () => feed.polls.length === 1)
      await trigger.stop()
    },
  )
})

describe.skipIf(!IS_BUILT)('the trigger by webhook', () => {
  const [CURRENT, FORMER] = [1, 2].map(byte => `whsec_${Buffer.alloc(32, byte).toString('base64')}`) as [string, string]

  function signed(secret: string): [Record<string, string>, Buffer] {
    const body = Buffer.from('{"event":"message.received"}')
    const at = String(Math.floor(Date.now() / 1_000))
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const signature = createHmac('sha256', key).update(`evt_a.${at}.`).update(body).digest('base64')
    return [{ 'webhook-id': 'evt_a', 'webhook-timestamp': at, 'webhook-signature': `v1,${signature}` }, body]
  }

  test.each([
    [
      'accepts the secret of an endpoint that it had within a day',
      { instanceId: ID, until: Date.now() + 3_600_000 },
      200,
    ],
    ['refuses the secret of an endpoint that it had before', { instanceId: ID, until: Date.now() - 1 }, 401],
    ['refuses the secret of another instance', { instanceId: 'inst_b', until: Date.now() + 3_600_000 }, 401],
  ])('%s', async (_title, former, status) => {
    const staticData = {
      instanceId: ID,
      endpointId: 'endpoint_a',
      secret: CURRENT,
      former: [{ secret: FORMER, ...former }],
    }
    const credentials = { baseUrl: 'http://127.0.0.1:1', token: 'x' }
    const trigger = webhookTrigger({ credentials, parameters: PARAMETERS, staticData, url: 'http://n8n.example/hook' })
    expect(await trigger.receive(...signed(FORMER))).toMatchObject({ status })
    expect(await trigger.receive(...signed(CURRENT))).toMatchObject({ status: 200 })
  })

  test('keeps the last five secrets', async () => {
    const { credentials } = await startFeed('hold')
    const staticData: Record<string, unknown> = {}
    const trigger = webhookTrigger({ credentials, parameters: PARAMETERS, staticData, url: 'http://n8n.example/hook' })
    for (const number of [1, 2, 3, 4, 5, 6]) {
      Object.assign(staticData, { instanceId: ID, endpointId: `endpoint_${number}`, secret: `whsec_${number}` })
      await trigger.remove()
    }
    const { former } = staticData as { former: { secret: string }[] }
    expect(former.map(({ secret }) => secret)).toEqual([6, 5, 4, 3, 2].map(number => `whsec_${number}`))
  })
})
