import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ApiSettings } from '../../../src/api/server.ts'
import type { Statistics } from '../../../src/store/statistics/statistics.ts'
import { until } from '../../until.ts'
import { ADMIN_KEY, type Answer, API_SETTINGS, ApiHarness } from './harness.ts'

const ORIGIN = { 'sec-fetch-site': 'same-origin' }

let api: ApiHarness
beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(() => api[Symbol.asyncDispose]())

async function signIn(key: string): Promise<{ answer: Answer; cookie: string }> {
  const answer = await api.call({ method: 'POST', path: '/admin/v1/session', body: { key } })
  return { answer, cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' }
}

describe('sessions', () => {
  test('the admin key opens a session, and its cookie then authorises calls', async () => {
    const { answer, cookie } = await signIn(ADMIN_KEY)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('set-cookie')).toMatch(
      /^pombal_session=[\w-]{43}; Path=\/admin\/v1; Max-Age=604800; HttpOnly; SameSite=Strict$/,
    )
    const read = await api.call({ path: '/admin/v1/session', headers: { cookie } })
    expect(read.body.data).toEqual({
      account: null,
      id: answer.body.data.id,
      passwordSet: false,
      sandbox: true,
      version: '1.2.3',
    })
    const listed = await api.call({ path: '/admin/v1/sessions', headers: { cookie } })
    expect(listed.body.data).toContainEqual(expect.objectContaining({ id: read.body.data.id, current: true }))
  })

  test('behind https its cookie is Secure and only of this host, if a trusted proxy or PUBLIC_URL says so', async () => {
    const secure = async (settings: Partial<ApiSettings>, headers: Record<string, string> = {}) => {
      await using served = await ApiHarness.start({ options: { settings: { ...API_SETTINGS, ...settings } } })
      const body = { key: ADMIN_KEY }
      const answer = await served.call({ method: 'POST', path: '/admin/v1/session', body, headers })
      const cookie = answer.headers.get('set-cookie')
      return /^__Host-pombal_session=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure$/.test(
        cookie!,
      )
    }
    const forwarded = { 'x-forwarded-proto': 'https' }
    expect(await secure({ trustedProxies: ['127.0.0.1'] }, forwarded)).toBe(true)
    expect(await secure({ trustedProxies: ['10.0.0.0/8'] }, forwarded)).toBe(false)
    expect(await secure({}, forwarded)).toBe(false)
    expect(await secure({ publicUrl: new URL('https://pombal.example') })).toBe(true)
  })

  test('a write with a session must come from a page of this origin; a read need not', async () => {
    const { cookie } = await signIn(ADMIN_KEY)
    const write = (headers: Record<string, string>) =>
      api.call({ method: 'POST', path: '/admin/v1/instances', headers: { cookie, ...headers }, body: {} })
    expect((await write({})).body.error.code).toBe('cross_site_request')
    expect((await write({ 'sec-fetch-site': 'same-site', origin: api.url })).body.error.code).toBe('cross_site_request')
    expect((await write(ORIGIN)).status).toBe(201)
    expect((await write({ origin: api.url })).status).toBe(201)
  })

  test('signing out, or ending a session by its ID, ends it for good', async () => {
    const [first, second] = [await signIn(ADMIN_KEY), await signIn(ADMIN_KEY)]
    const path = `/admin/v1/sessions/${second.answer.body.data.id}`
    await api.call({ method: 'DELETE', path, headers: { cookie: first.cookie, ...ORIGIN } })
    await api.call({ method: 'DELETE', path: '/admin/v1/session', headers: { cookie: first.cookie, ...ORIGIN } })
    for (const { cookie } of [first, second]) {
      const read = await api.call({ path: '/admin/v1/session', headers: { cookie } })
      expect([read.status, read.body.error.code]).toEqual([401, 'invalid_admin_key'])
    }
  })

  test('a password of less than 12 characters is refused; a good one ends the other sessions', async () => {
    const [setter, other] = [await signIn(ADMIN_KEY), await signIn(ADMIN_KEY)]
    const set = (password: string | null) =>
      api.call({
        method: 'PUT',
        path: '/admin/v1/password',
        headers: { cookie: setter.cookie, ...ORIGIN },
        body: { password },
      })
    expect((await set('short')).status).toBe(400)
    expect((await set('long enough now')).status).toBe(204)
    expect((await api.call({ path: '/admin/v1/session', headers: { cookie: other.cookie } })).status).toBe(401)
    expect((await signIn('long enough now')).answer.body.data.passwordSet).toBe(true)
    expect((await set(null)).status).toBe(204)
    expect((await signIn('long enough now')).answer.status).toBe(401)
  })

  test('a new password also ends sign-ins with the old one that are still running', async () => {
    await api.admin('PUT', '/password', { password: 'an old password' })
    const running = Array.from({ length: 6 }, () => signIn('an old password'))
    const set = await api.admin('PUT', '/password', { password: 'a new password' })
    expect(set.status).toBe(204)
    for (const { answer, cookie } of await Promise.all(running)) {
      expect([200, 401]).toContain(answer.status)
      expect((await api.call({ path: '/admin/v1/session', headers: { cookie } })).status).toBe(401)
    }
    await api.admin('PUT', '/password', { password: null })
  })

  test.each(['nonsense', 'pombal_session=', `pombal_session=${'x'.repeat(43)}`, `x=pombal_session=${'x'.repeat(43)}`])(
    'the cookie %s opens nothing',
    async cookie => {
      expect((await api.call({ path: '/admin/v1/session', headers: { cookie } })).status).toBe(401)
    },
  )
})

describe('the data of the pages', () => {
  test('a message sent by hand is accepted like a program’s, and only once under one key', async () => {
    const { id } = await api.createConnected()
    const send = (idempotencyKey: string, text = 'Hello') =>
      api.admin('POST', `/instances/${id}/messages`, { to: '5511987654321', text, idempotencyKey })
    const first = await send('one')
    expect([first.status, first.body.data.status]).toEqual([202, 'queued'])
    expect((await send('one')).body.data.id).toBe(first.body.data.id)
    expect((await send('one', 'Other')).body.error.code).toBe('idempotency_key_reused')
    const { id: unlinked } = await api.createInstance()
    const refused = await api.admin('POST', `/instances/${unlinked}/messages`, { to: '5511987654321', text: 'Hello' })
    expect(refused.body.error.code).toBe('instance_not_connected')
  })

  test('the idempotency headers count for a message sent by hand, and must equal the field', async () => {
    const { id } = await api.createConnected()
    const send = (headers: Record<string, string>, fields = {}) =>
      api.call({
        method: 'POST',
        path: `/admin/v1/instances/${id}/messages`,
        key: ADMIN_KEY,
        headers,
        body: { to: '5511987654321', text: 'Hello', ...fields },
      })
    const first = await send({ 'x-idempotency-key': 'two' })
    expect(first.headers.get('idempotent-replayed')).toBeNull()
    const repeated = [
      await send({ 'x-idempotency-key': 'two' }),
      await send({ 'idempotency-key': 'two' }),
      await send({}, { idempotencyKey: 'two' }),
      await send({ 'idempotency-key': 'two' }, { idempotencyKey: 'two' }),
    ]
    for (const { status, headers, body } of repeated)
      expect([status, headers.get('idempotent-replayed'), body.data.id]).toEqual([202, 'true', first.body.data.id])
    const refused = await send({ 'idempotency-key': 'two' }, { idempotencyKey: 'three' })
    expect([refused.status, refused.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('activity covers several instances, and statistics the deliveries of one', async () => {
    const instance = await api.createConnected()
    const { body } = await api.send(instance, { to: '5511987654321', text: 'Hello' })
    await api.progress(instance, body.data.id, 'read')
    const activity = await api.admin('GET', `/activity?ids=${instance.id}`)
    expect(activity.body.data).toEqual([
      {
        instanceId: instance.id,
        sentLastHour: 1,
        failedLastHour: 0,
        queuedLastHour: 0,
        receivedLastHour: 0,
        oldestUndeliveredAt: null,
        deliveries: { health: 'idle', retrying: 0, givenUp: 0, lastDeliveredAt: null, lastGivenUpAt: null },
      },
    ])
    for (const [hours, length] of [
      [1, 60],
      [24, 48],
      [168, 56],
    ]) {
      const statistics = await api.admin('GET', `/instances/${instance.id}/statistics?hours=${hours}`)
      expect(statistics.body.data.buckets).toHaveLength(length!)
      // A new period may have begun since.
      const latest: { notPosted: number }[] = statistics.body.data.buckets.slice(-2)
      expect(latest.reduce((sum, { notPosted }) => sum + notPosted, 0)).toBe(3)
      expect(latest.at(-1)).toMatchObject({ first: 0, medianMs: null })
    }
    const counts = await api.admin('GET', `/instances/${instance.id}/deliveries/counts?since=2026-01-01T00:00:00Z`)
    expect(counts.body.data).toEqual({ delivered: 0, exhausted: 0, notPosted: null, redelivering: 0 })
    expect((await api.admin('GET', '/activity?ids=%00')).status).toBe(400)
    expect((await api.admin('GET', `/instances/${instance.id}/statistics?hours=2`)).status).toBe(400)
  })

  test('other calls are answered while the statistics of many events are counted', async () => {
    let counted = 0
    await using served = await ApiHarness.start({
      store: ({ statistics }) => ({
        statistics: {
          outcomes(...period) {
            counted += 1
            for (const end = performance.now() + 5; performance.now() < end; );
            return statistics.outcomes(...period)
          },
          messages: (...period) => statistics.messages(...period),
          queued: (...periods) => statistics.queued(...periods),
          failures: (...period) => statistics.failures(...period),
        } as Statistics,
      }),
    })
    const { id, token } = await served.createInstance()
    const counting = served.admin('GET', `/instances/${id}/statistics?hours=168`)
    await until('the count to begin', () => counted > 0)
    expect((await served.call({ path: '/v1/instance', key: token })).status).toBe(200)
    expect(counted).toBeLessThan(56)
    expect((await counting).body.data.buckets).toHaveLength(56)
  })

  test('one call says what needs attention, with the space on the disk', async () => {
    await using served = await ApiHarness.start({
      options: { diskSpace: async () => ({ freeBytes: 1, totalBytes: 2, isNearlyFull: true }) },
    })
    const admin = async () => (await served.admin('GET', '/attention')).body.data
    await served.createConnected()
    expect(await admin()).toEqual({
      total: 0,
      instances: [],
      operatorEndpoints: [],
      disk: { freeBytes: 1, totalBytes: 2, isNearlyFull: true },
    })
  })

  test('a test event is posted to the URL, and the call returns its result', async () => {
    const { id } = await api.createInstance()
    expect((await api.admin('POST', `/instances/${id}/webhook/test`)).body.error.code).toBe('webhook_not_configured')
    await api.admin('PUT', `/instances/${id}/webhook`, { url: 'https://example.com/hook' })
    const { body } = await api.admin('POST', `/instances/${id}/webhook/test`)
    expect(body.data).toMatchObject({ url: 'https://example.com/hook', status: 204, error: null })
    expect(JSON.parse(body.data.body)).toMatchObject({ event: 'webhook.test', instanceId: id, data: {} })
    expect(body.data.headers['X-Service-Event']).toBe('webhook.test')
    expect((await api.admin('GET', `/instances/${id}/events`)).body.data).toEqual([])
  })

  test('only a sandbox has conversations and a phone', async () => {
    const real = await api.createInstance('whatsapp')
    const sandbox = await api.createConnected('sandbox')
    for (const path of ['conversations', 'phone']) {
      const refused = await api.admin('GET', `/instances/${real.id}/sandbox/${path}`)
      expect(refused.body.error.code).toBe('not_a_sandbox')
    }
    await api.send(sandbox, { to: '5511987654321', text: 'Hello' })
    const { body } = await api.admin('GET', `/instances/${sandbox.id}/sandbox/conversations`)
    expect(body.data).toMatchObject([{ with: '5511987654321', lines: [{ direction: 'out', status: 'queued' }] }])
    const phone = await api.admin('PUT', `/instances/${sandbox.id}/sandbox/phone`, { on: false })
    expect(phone.status).toBe(200)
  })
})

describe('the stream of changes', () => {
  test('reports each change, and ends with its session', async () => {
    const { cookie } = await signIn(ADMIN_KEY)
    const { id } = await api.createInstance()
    const response = await fetch(`${api.url}/admin/v1/changes`, { headers: { cookie } })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    let told = ''
    const ended = (async () => {
      for await (const chunk of response.body!) {
        told += Buffer.from(chunk).toString()
        if (told.includes('"what":"connection"')) {
          await api.call({ method: 'DELETE', path: '/admin/v1/session', headers: { cookie, ...ORIGIN } })
        }
      }
    })()
    await api.admin('PATCH', `/instances/${id}`, { name: 'Other' })
    await ended
    expect(told).toContain(`event: change\ndata: {"data":{"instanceId":"${id}","what":"connection"}}`)
  })

  test('is refused without a session', async () => {
    expect((await api.call({ path: '/admin/v1/changes' })).status).toBe(401)
  })
})
