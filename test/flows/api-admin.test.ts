import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN_KEY, API_SETTINGS, ApiHarness } from './api-harness.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
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
  test.each(CALLS)('%s %s asks for the admin key', async (method, path) => {
    const answer = await api.call({ method, path: `/admin/v1${path}` })
    expect([answer.status, answer.body.error.code]).toEqual([401, 'invalid_admin_key'])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
  })

  test('a token, or nearly the right key, is not the admin key', async () => {
    const { token } = await api.createInstance()
    for (const key of [token, `${ADMIN_KEY}x`, ADMIN_KEY.slice(1), ADMIN_KEY.toUpperCase()]) {
      const answer = await api.call({ path: '/admin/v1/instances', key })
      expect([answer.status, answer.body.error.code]).toEqual([401, 'invalid_admin_key'])
    }
  })

  test.each(CALLS.slice(2))(
    '%s %s: an instance that is not there is 404, whatever its id',
    async (method, path, body) => {
      for (const id of [NOT_THERE, 'x', '%00', '%zz', 'a'.repeat(3_000), '..%2f..']) {
        const answer = await api.admin(method, path.replace(NOT_THERE, id), body)
        expect([id, answer.status, answer.body.error.code]).toEqual([id, 404, 'instance_not_found'])
      }
    },
  )
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

  test('a missing key is no guess', async () => {
    await using fresh = await ApiHarness.start()
    for (let n = 0; n < 30; n += 1) expect((await fresh.call({ path: '/admin/v1/instances' })).status).toBe(401)
  })
})

describe('instances', () => {
  test('creating one answers 201 with its token, which is shown this once', async () => {
    const answer = await api.admin('POST', '/instances', { name: '  Shop ☕  ' })
    expect(answer.status).toBe(201)
    const { id, token } = answer.body.data
    expect(answer.body.data).toEqual({
      id: expect.stringMatching(/^inst_[0-9a-z]{12}$/),
      name: 'Shop ☕',
      kind: 'whatsapp',
      state: 'unlinked',
      reason: expect.any(String),
      phone: null,
      token: expect.stringMatching(/^pmb_[A-Za-z0-9_-]{43}$/),
      createdAt: expect.stringMatching(ISO),
    })
    const read = await api.admin('GET', `/instances/${id}`)
    const { token: _shownOnce, ...rest } = answer.body.data
    expect(read.body).toEqual({ data: rest })
    expect((await api.call({ path: '/v1/instance', key: token })).body.data).toMatchObject({ id, name: 'Shop ☕' })
  })

  test('without a name it gets one, without a body too; it asks for nothing until somebody links it', async () => {
    for (const body of [undefined, {}, { kind: 'whatsapp' }]) {
      const { status, body: answer } = await api.admin('POST', '/instances', body)
      expect([status, answer.data.name, answer.data.kind]).toEqual([201, 'WhatsApp', 'whatsapp'])
      expect((await api.store.connections.find(answer.data.id))?.goal).toBe('idle')
    }
  })

  test('a sandbox wants to be online from the start', async () => {
    const { body } = await api.admin('POST', '/instances', { kind: 'sandbox' })
    expect(body.data).toMatchObject({ kind: 'sandbox', name: 'Sandbox' })
    expect((await api.store.connections.find(body.data.id))?.goal).toBe('online')
  })

  test.each([
    { name: '' },
    { name: '   ' },
    { name: 'x'.repeat(101) },
    { name: 'a\u0000b' },
    { name: 'a\nb' },
    { name: 1 },
    { name: null },
    { kind: 'other' },
    { kind: null },
    { kind: ['sandbox'] },
  ])('%j is an invalid request', async body => {
    const answer = await api.admin('POST', '/instances', body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('a name may hold a hundred characters of any script', async () => {
    const name = '👋'.repeat(100)
    expect((await api.admin('POST', '/instances', { name })).body.data.name).toBe(name)
  })

  test('with the sandbox off none can be made or used', async () => {
    const writeAs = () => Promise.reject(new Error('never asked'))
    await using off = await ApiHarness.start({
      options: { sandbox: { enabled: false, writeAs, isPhoneOn: async () => false, switchPhone: writeAs } },
    })
    expect((await off.admin('POST', '/instances', { kind: 'sandbox' })).body.error.code).toBe('sandbox_disabled')
    expect((await off.admin('POST', '/instances', { kind: 'whatsapp' })).status).toBe(201)
  })

  test('renaming one', async () => {
    const { id } = await api.createInstance()
    const answer = await api.admin('PATCH', `/instances/${id}`, { name: ' Other ' })
    expect([answer.status, answer.body.data.name]).toEqual([200, 'Other'])
    expect((await api.admin('GET', `/instances/${id}`)).body.data.name).toBe('Other')
    expect((await api.admin('PATCH', `/instances/${id}`, {})).body.error.code).toBe('invalid_request')
    expect((await api.admin('PATCH', `/instances/${id}`, { name: '' })).body.error.code).toBe('invalid_request')
  })

  test('deleting one is 204; it is gone at once', async () => {
    const { id } = await api.createConnected()
    const answer = await api.admin('DELETE', `/instances/${id}`)
    expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([204, '', null])
    expect((await api.admin('GET', `/instances/${id}`)).status).toBe(404)
    expect((await api.admin('GET', `/instances/${id}/connection`)).status).toBe(404)
    expect((await api.admin('DELETE', `/instances/${id}`)).status).toBe(404)
    const { body } = await api.admin('GET', '/instances?limit=200')
    expect(body.data.some((instance: { id: string }) => instance.id === id)).toBe(false)
  })
})

describe('lists', () => {
  test('page by cursor, newest first, each entry once, until nextCursor is null', async () => {
    await using fresh = await ApiHarness.start()
    const made: string[] = []
    for (let n = 0; n < 7; n += 1) made.unshift((await fresh.createInstance()).id)
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const { body } = await fresh.admin('GET', `/instances?limit=3${query}`)
      expect(body.data.length).toBeLessThanOrEqual(3)
      seen.push(...body.data.map(({ id }: { id: string }) => id))
      cursor = body.nextCursor
    } while (cursor !== null)
    expect(seen).toEqual(made)
    expect((await fresh.admin('GET', '/instances')).body).toMatchObject({ nextCursor: null })
  })

  test('search finds by part of a name', async () => {
    await api.admin('POST', '/instances', { name: 'Needle 4711' })
    const { body } = await api.admin('GET', '/instances?search=edle%204711')
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['Needle 4711'])
    expect((await api.admin('GET', '/instances?search=%25_nothing')).body.data).toEqual([])
  })

  test.each([
    'limit=0',
    'limit=201',
    'limit=-1',
    'limit=1.5',
    'limit=x',
    'limit=',
    'limit=1&limit=2',
    'limit=1e999',
    'cursor=',
    'cursor=x',
    'cursor=%00',
    'cursor=bm90IGEgY3Vyc29y',
    `cursor=${'x'.repeat(2_000)}`,
    'cursor=a&cursor=b',
    'search=%00',
    'serach=Needle',
    'limit=1&state=connected',
    `search=${'x'.repeat(101)}`,
  ])('?%s is an invalid request', async query => {
    const answer = await api.admin('GET', `/instances?${query}`)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })
})

describe('the connection', () => {
  test('reports the state, and the QR code while linking', async () => {
    const { id } = await api.createInstance()
    const unlinked = await api.admin('GET', `/instances/${id}/connection`)
    expect(unlinked.body.data).toEqual({
      instanceId: id,
      kind: 'whatsapp',
      state: 'unlinked',
      reason: expect.any(String),
      since: expect.stringMatching(ISO),
      qr: null,
      qrExpiresAt: null,
      pairingCode: null,
      cause: 'never_linked',
      retryAt: null,
      restriction: null,
      phone: null,
      lastConnectedAt: null,
      simulated: false,
    })
    const expires = Date.now() + 20_000
    await api.record(id, { state: 'linking', reason: 'Scan the code.', qr: '2@abc,def', qrExpiresAt: expires })
    const linking = await api.admin('GET', `/instances/${id}/connection`)
    expect(linking.body.data).toMatchObject({
      state: 'linking',
      reason: 'Scan the code.',
      qr: '2@abc,def',
      qrExpiresAt: new Date(expires).toISOString(),
    })
    await api.record(id, {
      state: 'connected',
      reason: 'Connected.',
      qr: null,
      qrExpiresAt: null,
      phone: '5511900000000',
    })
    const connected = await api.admin('GET', `/instances/${id}/connection`)
    expect(connected.body.data).toMatchObject({
      state: 'connected',
      phone: '5511900000000',
      qr: null,
      lastConnectedAt: expect.stringMatching(ISO),
    })
  })

  test('shows when the next attempt is due, and a restriction until it ends', async () => {
    const { id } = await api.createConnected()
    const at = Date.now() + 60_000
    const restriction = { since: at - 70_000, until: at, reportedByWhatsapp: true }
    await api.record(id, { state: 'reconnecting', reason: 'Cut.', cause: 'cut', retryAt: at, restriction })
    const iso = (ms: number) => new Date(ms).toISOString()
    const { data } = (await api.admin('GET', `/instances/${id}/connection`)).body
    expect(data).toMatchObject({
      cause: 'cut',
      retryAt: iso(at),
      restriction: { since: iso(restriction.since), until: iso(at), reportedByWhatsapp: true },
    })
    await api.record(id, { restriction: { ...restriction, until: Date.now() } })
    expect((await api.admin('GET', `/instances/${id}/connection`)).body.data.restriction).toBeNull()
  })

  test('health is what the owner recorded, and 404 without an instance', async () => {
    const { id } = await api.createConnected()
    const path = `/instances/${id}/health`
    expect((await api.admin('GET', path)).body.data).toEqual({
      instanceId: id,
      state: 'connected',
      reason: 'Connected.',
      cause: expect.anything(),
      since: expect.stringMatching(ISO),
      restriction: null,
      lastFrameAt: null,
      lastAcknowledgement: null,
      undecryptable: { count: 0, lastAt: null },
      closes: [],
    })
    const at = Date.now()
    const seen = {
      lastFrameAt: at,
      acknowledgement: { at, latencyMs: 40 },
      undecryptable: 2,
      lastUndecryptableAt: at,
      closes: [
        { at: at - 1, code: 428 },
        { at, code: 428 },
      ],
    }
    await api.store.connections.recordHealth(await api.lease(id), seen, at)
    const iso = new Date(at).toISOString()
    expect((await api.admin('GET', path)).body.data).toMatchObject({
      lastFrameAt: iso,
      lastAcknowledgement: { at: iso, latencyMs: 40 },
      undecryptable: { count: 2, lastAt: iso },
      closes: [{ code: 428, count: 2, lastAt: iso }],
    })
    expect((await api.admin('GET', '/instances/inst_absent/health')).status).toBe(404)
  })

  test('says that a sandbox, or an instance on another socket, is simulated', async () => {
    const { id } = await api.createInstance('sandbox')
    expect((await api.admin('GET', `/instances/${id}/connection`)).body.data.simulated).toBe(true)
    const settings = { ...API_SETTINGS, simulated: true }
    await using elsewhere = await ApiHarness.start({ options: { settings } })
    const other = await elsewhere.createInstance()
    expect((await elsewhere.admin('GET', `/instances/${other.id}/connection`)).body.data.simulated).toBe(true)
  })

  test('connect is 202 and asks the owner, again each time', async () => {
    const { id } = await api.createInstance()
    const hinted: string[] = []
    const stop = api.store.hints.on('goal', changed => hinted.push(changed))
    const answer = await api.admin('POST', `/instances/${id}/connect`)
    expect([answer.status, answer.body.data.instanceId]).toEqual([202, id])
    const first = await api.store.connections.find(id)
    expect(first).toMatchObject({ goal: 'online', pairingPhone: null })
    await api.admin('POST', `/instances/${id}/connect`, { phone: '5511987654321' })
    const second = await api.store.connections.find(id)
    expect(second).toMatchObject({ goal: 'online', pairingPhone: '5511987654321', goalVersion: first!.goalVersion + 1 })
    expect(hinted.filter(changed => changed === id)).toHaveLength(2)
    stop()
  })

  test.each([
    { phone: '' },
    { phone: '+5511987654321' },
    { phone: 5511987654321 },
    { phone: '1203@g.us' },
    { phone: null },
  ])('connect with %j is an invalid request', async body => {
    const { id } = await api.createInstance()
    expect((await api.admin('POST', `/instances/${id}/connect`, body)).body.error.code).toBe('invalid_request')
    expect((await api.store.connections.find(id))?.goal).toBe('idle')
  })

  test('logout is 202 and asks the owner', async () => {
    const { id } = await api.createConnected()
    const answer = await api.admin('POST', `/instances/${id}/logout`)
    expect([answer.status, answer.body.data.instanceId]).toEqual([202, id])
    expect((await api.store.connections.find(id))?.goal).toBe('logged_out')
  })
})

describe('the webhook', () => {
  test('is set, cleared and read', async () => {
    const instance = await api.createInstance()
    const path = `/instances/${instance.id}/webhook`
    const set = await api.admin('PUT', path, { url: 'https://example.com/a' })
    expect([set.status, set.body.data.url, set.body.data.active]).toEqual([200, 'https://example.com/a', true])
    expect((await api.call({ path: `/v1/webhooks/${instance.id}`, key: instance.token })).body).toEqual(set.body)
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

  test('a new secret replaces the old one, and both sign for a time', async () => {
    const { id } = await api.createInstance()
    const before = (await api.admin('GET', `/instances/${id}/webhook`)).body.data
    const answer = await api.admin('POST', `/instances/${id}/webhook/secret`)
    expect(answer.status).toBe(200)
    expect(answer.body.data.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(answer.body.data.secret).not.toBe(before.secret)
    expect((await api.admin('GET', `/instances/${id}/webhook`)).body).toEqual(answer.body)
    expect(await api.store.instances.findSigningSecrets(id, Date.now())).toEqual({
      current: answer.body.data.secret,
      previous: before.secret,
    })
  })
})

describe('sandbox/incoming', () => {
  test('a simulated contact writes, alone or in a group, also while the instance is away', async () => {
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
