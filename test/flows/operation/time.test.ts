import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { createReceiver, isSigned, isStandardSigned } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** Time limits take effect in a running service. The tests change timestamps in its rows, or its clock, instead of waiting. */

const CONTACT = '15005550003'
const SECOND_MS = 1_000
const DAY_MS = 24 * 60 * 60 * SECOND_MS
/** The time before the end of a period at which a test still checks. */
const LEFT_MS = 30 * SECOND_MS
/** On SIGUSR2 the monotonic clock advances by this much, in every thread. */
const JUMP_MS = 25 * SECOND_MS
const jumpingClock = `--import=data:text/javascript,${encodeURIComponent(`
  import { BroadcastChannel } from 'node:worker_threads'
  const now = performance.now.bind(performance)
  let ahead = 0
  performance.now = () => now() + ahead
  const jumps = new BroadcastChannel('jumps')
  jumps.onmessage = () => { ahead += ${JUMP_MS} }
  jumps.unref()
  process.on('SIGUSR2', () => {
    ahead += ${JUMP_MS}
    jumps.postMessage(null)
  })
`)}`

interface Answer {
  status: number
  limit: number
  remaining: number
  resetSeconds: number
  retryAfter: string | null
}

async function call(url: string, token: string): Promise<Answer> {
  const { status, headers } = await fetch(`${url}/v1/instance`, { headers: { authorization: `Bearer ${token}` } })
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map(name =>
    Number(headers.get(`ratelimit-${name}`)),
  )
  return { status, limit: limit!, remaining: remaining!, resetSeconds: reset!, retryAfter: headers.get('retry-after') }
}

describe.each(ONE_STORE)('with the store on %s', store => {
  let database: TestDatabase
  let service: Service
  beforeAll(async () => {
    database = await createDatabase(store, inject('postgresUrl'))
    service = await new Service({
      env: { ...database.env, RATE_LIMIT_PER_MINUTE: undefined },
      nodeOptions: [jumpingClock],
    }).start()
  })
  afterAll(async () => {
    await service.dispose()
    await database.dispose()
  })

  const age = (table: string, column: string, ms: number) =>
    database.run(`update ${table} set ${column} = ${column} - ${ms}`, service.dataDir)

  test('an idempotency key is kept for 24 h, and can then be used again', async () => {
    const { id, token } = await service.admin.createConnected()
    const instance = service.instance(id, token)
    const first = await instance.send(CONTACT, 'first', 'key')
    await age('idempotency_keys', 'expires_at', DAY_MS - LEFT_MS)
    expect(await instance.send(CONTACT, 'first', 'key')).toEqual({ id: first.id, replayed: true })
    await expect(instance.send(CONTACT, 'second', 'key')).rejects.toMatchObject({ code: 'idempotency_key_reused' })

    await age('idempotency_keys', 'expires_at', LEFT_MS)
    const second = await instance.send(CONTACT, 'second', 'key')
    expect(second.replayed).toBe(false)
    expect(await instance.send(CONTACT, 'second', 'key')).toEqual({ id: second.id, replayed: true })
    expect(await service.admin.listMessages(id)).toHaveLength(2)
  })

  test('a replaced webhook secret signs in addition for 24 h', async () => {
    const receiver = await createReceiver()
    onTestFinished(() => receiver.close())
    const { id, token } = await service.admin.createConnected()
    const { secret: former } = await service.instance(id, token).setWebhook(receiver.url)
    const { secret } = await service.admin.replaceWebhookSecret(id)

    async function post() {
      const before = receiver.requests.length
      await service.admin.writeAsContact(id, { from: CONTACT, text: 'hello' })
      await receiver.waitFor(before + 1)
      const request = receiver.requests[before]!
      expect(isSigned(request, secret) && isStandardSigned(request, secret)).toBe(true)
      return request
    }
    await age('instances', 'previous_secret_until', DAY_MS - LEFT_MS)
    expect(isStandardSigned(await post(), former)).toBe(true)

    await age('instances', 'previous_secret_until', LEFT_MS)
    const alone = await until('the new secret to sign alone', async () => {
      const request = await post()
      return !isStandardSigned(request, former) && request
    })
    expect(alone.headers['webhook-signature']).toMatch(/^v1,\S+$/)
  })

  test('a rate window counts down for 60 s, and the next call opens another', async () => {
    const { token } = await service.admin.createInstance('whatsapp')
    const ask = () => call(service.url!, token)
    const jump = async (leftSeconds: number) => {
      if (store === 'sqlite') service.signal('SIGUSR2')
      else await age('rate_windows', 'opened_at', JUMP_MS)
      return until('the jump', async () => {
        const answer = await ask()
        return answer.resetSeconds <= leftSeconds && answer
      })
    }
    const startedAt = performance.now()
    expect(await ask()).toEqual({ status: 200, limit: 100, remaining: 99, resetSeconds: 60, retryAfter: null })
    await Promise.all(Array.from({ length: 99 }, ask))
    for (const leftSeconds of [35, 10]) {
      const refused = await jump(leftSeconds)
      expect(refused).toMatchObject({ status: 429, remaining: 0, retryAfter: String(refused.resetSeconds) })
    }
    const allowed = await until('the end of the window', async () => {
      const answer = await ask()
      return answer.status === 200 && answer
    })
    expect(performance.now() - startedAt).toBeGreaterThan(60 * SECOND_MS - 2 * JUMP_MS - 10)
    expect(allowed).toEqual({ status: 200, limit: 100, remaining: 99, resetSeconds: 60, retryAfter: null })
  })
})
