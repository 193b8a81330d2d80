import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findSecrets } from '../../contract/fixture.ts'
import { ADMIN_KEY, ApiHarness } from './harness.ts'

const NOT_THERE = 'inst_000000000000'

let api: ApiHarness

beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(() => api[Symbol.asyncDispose]())

const CALLS: [method: string, path: string, body?: object][] = [
  ['POST', '/instances'],
  ['GET', '/instances'],
  ['GET', `/instances/${NOT_THERE}`],
  ['PATCH', `/instances/${NOT_THERE}`, { name: 'x' }],
  ['DELETE', `/instances/${NOT_THERE}`],
  ['POST', `/instances/${NOT_THERE}/token`],
  ['POST', `/instances/${NOT_THERE}/connect`],
  ['POST', `/instances/${NOT_THERE}/logout`],
  ['GET', `/instances/${NOT_THERE}/connection`],
  ['GET', `/instances/${NOT_THERE}/connection/stream`],
  ['GET', `/instances/${NOT_THERE}/webhook`],
  ['PUT', `/instances/${NOT_THERE}/webhook`, { url: null }],
  ['POST', `/instances/${NOT_THERE}/webhook/secret`],
  ['GET', `/instances/${NOT_THERE}/messages`],
  ['GET', `/instances/${NOT_THERE}/messages/msg_1`],
  ['GET', `/instances/${NOT_THERE}/events`],
  ['GET', `/instances/${NOT_THERE}/events/evt_1`],
  ['POST', `/instances/${NOT_THERE}/events/evt_1/redeliver`],
  ['POST', `/instances/${NOT_THERE}/events/redeliver`, { since: '2026-01-01T00:00:00Z' }],
  ['POST', `/instances/${NOT_THERE}/sandbox/incoming`, { from: '5511912345678', text: 'x' }],
]

describe('every call', () => {
  test.each(CALLS)('%s %s requires the admin key', async (method, path) => {
    const answer = await api.call({ method, path: `/admin/v1${path}` })
    expect([answer.status, answer.body.error.code]).toEqual([401, 'invalid_admin_key'])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })

  test('a token, or a key that differs by one character, is not the admin key', async () => {
    const { token } = await api.createInstance()
    for (const key of [token, `${ADMIN_KEY}x`, ADMIN_KEY.slice(1), ADMIN_KEY.toUpperCase()]) {
      const answer = await api.call({ path: '/admin/v1/instances', key })
      expect([answer.status, answer.body.error.code]).toEqual([401, 'invalid_admin_key'])
    }
  })

  test.each(CALLS.slice(2))('%s %s: an unknown instance is 404, whatever its ID', async (method, path, body) => {
    for (const id of [NOT_THERE, 'x', '%00', '%zz', 'a'.repeat(3_000), '..%2f..']) {
      const answer = await api.admin(method, path.replace(NOT_THERE, id), body)
      expect([id, answer.status, answer.body.error.code]).toEqual([id, 404, 'instance_not_found'])
    }
  })
})

describe('guessing the admin key', () => {
  test('is throttled after ten wrong keys in a minute; the right key is never refused', async () => {
    await using fresh = await ApiHarness.start()
    const guess = () => fresh.call({ path: '/admin/v1/instances', key: 'wrong' })
    for (let n = 0; n < 10; n += 1) expect((await guess()).status).toBe(401)
    const throttled = await guess()
    expect([throttled.status, throttled.body.error.code]).toEqual([429, 'too_many_attempts'])
    const waitSeconds = Number(throttled.headers.get('retry-after'))
    expect(waitSeconds).toBeGreaterThan(30)
    expect(waitSeconds).toBeLessThanOrEqual(60)
    expect((await fresh.admin('GET', '/instances')).status).toBe(200)
    expect((await guess()).status).toBe(429)
  })

  test('a missing key does not count as a guess', async () => {
    await using fresh = await ApiHarness.start()
    for (let n = 0; n < 30; n += 1) expect((await fresh.call({ path: '/admin/v1/instances' })).status).toBe(401)
  })
})

describe('the webhook', () => {
  test('is set, cleared and read', async () => {
    const instance = await api.createInstance()
    const path = `/instances/${instance.id}/webhook`
    const set = await api.admin('PUT', path, { url: 'https://example.com/a' })
    expect([set.status, set.body.data.url, set.body.data.active]).toEqual([200, 'https://example.com/a', true])
    const { previousSecretUntil, ...contract } = set.body.data
    expect(previousSecretUntil).toBeNull()
    const own = await api.call({ path: `/v1/webhooks/${instance.id}`, key: instance.token })
    expect(own.body.data).toEqual(contract)
    const cleared = await api.admin('PUT', path, { url: null })
    expect(cleared.body.data).toEqual({ ...set.body.data, url: null, active: false })
    expect((await api.admin('GET', path)).body).toEqual(cleared.body)
  })

  test.each([
    {},
    { url: '' },
    { url: 1 },
    { url: 'ftp://x' },
    { url: 'http://127.0.0.1' },
    { url: 'https://a:b@example.com' },
  ])('%j is an invalid request', async body => {
    const { id } = await api.createInstance()
    const answer = await api.admin('PUT', `/instances/${id}/webhook`, body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('a new secret replaces the old one, which also signs for another 24 h', async () => {
    const { id } = await api.createInstance()
    const before = (await api.admin('GET', `/instances/${id}/webhook`)).body.data
    const answer = await api.admin('POST', `/instances/${id}/webhook/secret`)
    expect(answer.status).toBe(200)
    expect(answer.body.data.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(answer.body.data.secret).not.toBe(before.secret)
    expect((await api.admin('GET', `/instances/${id}/webhook`)).body).toEqual(answer.body)
    expect(await findSecrets(api.store, id, Date.now())).toEqual({
      current: answer.body.data.secret,
      previous: [before.secret],
    })
  })
})

describe('sandbox/incoming', () => {
  test('a simulated contact writes, directly or in a group, even while the instance is offline', async () => {
    const { id } = await api.createConnected('sandbox')
    const path = `/instances/${id}/sandbox/incoming`
    await api.record(id, { state: 'reconnecting', reason: 'x' })
    const alone = await api.admin('POST', path, { from: '5511912345678', text: 'Hi' })
    expect([alone.status, alone.body]).toEqual([202, { data: { id: '3EB0AAAA' } }])
    const message = { from: '5511912345678', text: 'Hi all', group: '120363041234567890@g.us', name: 'Ana' }
    expect((await api.admin('POST', path, message)).status).toBe(202)
    expect(api.written.slice(-2)).toEqual([
      { instanceId: id, from: '5511912345678', text: 'Hi' },
      { instanceId: id, ...message },
    ])
  })

  test('only a sandbox has simulated contacts', async () => {
    const { id } = await api.createConnected('whatsapp')
    const answer = await api.admin('POST', `/instances/${id}/sandbox/incoming`, { from: '5511912345678', text: 'x' })
    expect([answer.status, answer.body.error.code]).toEqual([409, 'not_a_sandbox'])
  })

  test.each([
    {},
    { from: '5511912345678' },
    { text: 'x' },
    { from: 'x', text: 'x' },
    { from: '1203@g.us', text: 'x' },
    { from: '5511912345678', text: '' },
    { from: '5511912345678', text: '\u0000' },
    { from: '5511912345678', text: 'x', group: '5511987654321' },
    { from: '5511912345678', text: 'x', group: 1 },
    { from: '5511912345678', text: 'x', name: '' },
    { from: '5511912345678', text: 'x', name: 'x'.repeat(101) },
  ])('%j is an invalid request', async body => {
    const { id } = await api.createInstance('sandbox')
    const answer = await api.admin('POST', `/instances/${id}/sandbox/incoming`, body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test.each(['unlinked', 'linking', 'logged_out'] as const)(
    'is refused while the instance is %s: WhatsApp would keep nothing for it',
    async state => {
      const { id } = await api.createInstance('sandbox')
      await api.record(id, { state, reason: 'x' })
      const path = `/instances/${id}/sandbox/incoming`
      const answer = await api.admin('POST', path, { from: '5511912345678', text: 'x' })
      expect([answer.status, answer.body.error.code]).toEqual([422, 'instance_not_connected'])
    },
  )

  test('a refusal by the network reaches the caller', async () => {
    const { id } = await api.createConnected('sandbox')
    const path = `/admin/v1/instances/${id}/sandbox/incoming`
    const answer = await fetch(api.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ from: '15005550099', text: 'x' }),
    })
    expect(answer.status).toBe(422)
  })
})
