import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { ADMIN_KEY, ApiHarness, type Created } from './harness.ts'

const UNKNOWN_TOKEN = `pmb_${'x'.repeat(43)}`

describe.each(ONE_STORE)('on %s', on => {
  let api: ApiHarness
  let instance: Created

  beforeAll(async () => {
    api = await ApiHarness.start({ on })
    instance = await api.createConnected()
  })
  afterAll(() => api[Symbol.asyncDispose]())

  const ENDPOINTS = [
    ['POST', '/v1/messages/text'],
    ['POST', '/v1/messages/media'],
    ['GET', '/v1/messages/msg_1'],
    ['GET', '/v1/instance'],
    ['GET', '/v1/webhooks/inst_1'],
    ['PUT', '/v1/webhooks/inst_1'],
  ] as const

  describe('the token (401 invalid_token)', () => {
    test.each(ENDPOINTS)('%s %s checks it before anything else', async (method, path) => {
      const headers = { 'content-type': 'text/plain' }
      const answer = await api.call({ method, path, headers, ...(method !== 'GET' && { body: 'not json' }) })
      expect(answer.status).toBe(401)
      const requestId = answer.headers.get('x-request-id')
      expect(answer.body).toEqual({
        error: { code: 'invalid_token', message: expect.stringMatching(/Bearer/), requestId },
      })
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      expect(answer.headers.get('ratelimit-limit')).toBeNull()
    })

    test.each([
      ['another scheme', `Basic ${UNKNOWN_TOKEN}`],
      ['no scheme', UNKNOWN_TOKEN],
      ['no token', 'Bearer'],
      ['an empty token', 'Bearer '],
      ['two tokens', `Bearer ${UNKNOWN_TOKEN} ${UNKNOWN_TOKEN}`],
      ['an unknown token', `Bearer ${UNKNOWN_TOKEN}`],
      ['the admin key', `Bearer ${ADMIN_KEY}`],
      ['a very long token', `Bearer ${'x'.repeat(10_000)}`],
      ['other characters', 'Bearer tök€n'.replace('€', '\u00a4')],
    ])('%s', async (_what, authorization) => {
      const answer = await api.call({ path: '/v1/instance', headers: { authorization } })
      expect([answer.status, answer.body.error.code]).toEqual([401, 'invalid_token'])
    })

    test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('the scheme is case-insensitive: %s', async scheme => {
      const answer = await api.call({ path: '/v1/instance', headers: { authorization: `${scheme} ${instance.token}` } })
      expect(answer.status).toBe(200)
    })

    test('a replaced token is invalid immediately, and the new one is valid', async () => {
      const other = await api.createInstance()
      const { body } = await api.admin('POST', `/instances/${other.id}/token`)
      expect(body.data.token).toMatch(/^pmb_[A-Za-z0-9_-]{43}$/)
      expect((await api.call({ path: '/v1/instance', key: other.token })).status).toBe(401)
      expect((await api.call({ path: '/v1/instance', key: body.data.token })).status).toBe(200)
    })

    test('the token of a deleted instance is invalid', async () => {
      const other = await api.createConnected()
      await api.admin('DELETE', `/instances/${other.id}`)
      for (const [method, path] of ENDPOINTS) {
        expect((await api.call({ method, path, key: other.token })).body.error.code).toBe('invalid_token')
      }
    })
  })

  describe('the instance in the path (404 instance_not_found)', () => {
    const IDS = [
      'inst_000000000000',
      'x',
      '',
      '%20',
      '%00',
      '%zz',
      '%ff',
      'a'.repeat(8_000),
      '%F0%9F%91%8B',
      '~!$&()*+,;=:@',
    ]

    test.each(['GET', 'PUT'])("%s: every ID except the caller's own is refused in the same way", async method => {
      const other = await api.createInstance()
      const answers = []
      for (const id of [other.id, instance.id.toUpperCase(), `${instance.id}%00`, ...IDS]) {
        const body = method === 'PUT' ? '{"not json' : undefined
        answers.push(await api.call({ method, path: `/v1/webhooks/${id}`, key: instance.token, body }))
      }
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]))
      const errors = answers.map(({ body: { error }, headers }) => ({
        ...error,
        requestId: headers.get('x-request-id'),
      }))
      expect(answers.map(({ body }) => body)).toEqual(errors.map(error => ({ error })))
      expect(new Set(errors.map(({ requestId: _, ...error }) => JSON.stringify(error))).size).toBe(1)
      expect(answers[0]!.body.error.code).toBe('instance_not_found')
    })

    test('is reported before a wrong type or size of the body', async () => {
      const path = '/v1/webhooks/inst_other'
      const large = 'x'.repeat(1_048_577)
      for (const body of ['x', large]) {
        const answer = await api.call({
          method: 'PUT',
          path,
          key: instance.token,
          headers: { 'content-type': 'text/plain' },
          body,
        })
        expect(answer.body.error.code).toBe('instance_not_found')
      }
    })

    test('an encoded id is the same id', async () => {
      const encoded = `%69${instance.id.slice(1)}`
      expect((await api.call({ path: `/v1/webhooks/${encoded}`, key: instance.token })).status).toBe(200)
    })
  })

  describe('X-Request-Id', () => {
    test.each(['a', 'my-request/1', '~'.repeat(128)])('a valid one from the caller is kept: %s', async id => {
      const answer = await api.call({ path: '/v1/instance', key: instance.token, headers: { 'x-request-id': id } })
      expect(answer.headers.get('x-request-id')).toBe(id)
    })

    test.each(['', 'a b', 'x'.repeat(129), 'é'])('an invalid one is replaced: %j', async id => {
      const answer = await api.call({ path: '/v1/instance', headers: { 'x-request-id': id } })
      expect(answer.headers.get('x-request-id')).toMatch(/^req_[0-9a-z_]+$/)
    })

    test('is on every answer and always unique', async () => {
      const paths = [
        '/',
        '/healthz',
        '/readyz',
        '/docs/',
        '/openapi.json',
        '/nope',
        '/v1/nope',
        '/admin/v1/nope',
        '/v1/instance',
      ]
      const ids = []
      for (const path of paths) ids.push((await api.call({ path })).headers.get('x-request-id'))
      expect(ids.every(id => id !== null && id !== '')).toBe(true)
      expect(new Set(ids).size).toBe(paths.length)
    })
  })

  describe('HTTP', () => {
    test('an unknown address is 404 not_found in the envelope', async () => {
      for (const path of ['/nope', '/v2/messages', '/v1x', '/favicon.ico', '/%zz', '//', '/docs/nope']) {
        const answer = await api.call({ path })
        expect([path, answer.status, answer.body?.error.code]).toEqual([path, 404, 'not_found'])
        expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
      }
    })

    test('under /v1 and /admin/v1 it is reported only to authorised callers', async () => {
      expect((await api.call({ path: '/v1/nope' })).body.error.code).toBe('invalid_token')
      expect((await api.call({ path: '/admin/v1/nope' })).body.error.code).toBe('invalid_admin_key')
      const v1 = await api.call({ method: 'POST', path: '/v1/nope', key: instance.token, body: '{' })
      expect([v1.status, v1.body.error.code]).toEqual([404, 'not_found'])
      expect(v1.headers.get('ratelimit-limit')).not.toBeNull()
      expect((await api.admin('POST', '/nope', '{')).body.error.code).toBe('not_found')
      expect((await api.call({ path: '/v1', key: instance.token })).body.error.code).toBe('not_found')
    })

    test('every list refuses a query parameter that it does not have', async () => {
      const { paths } = api.server.swagger() as { paths: Record<string, { get?: { operationId?: string } }> }
      const lists = Object.keys(paths).filter(path => /^list/.test(paths[path]?.get?.operationId ?? ''))
      expect(lists).toEqual(
        expect.arrayContaining([
          '/admin/v1/accounts',
          '/admin/v1/sessions',
          '/admin/v1/endpoints',
          '/admin/v1/alerts/targets',
          '/admin/v1/alerts/rules',
          '/admin/v1/instances/{id}/keys',
          '/admin/v1/instances/{id}/links',
          '/admin/v1/instances/{id}/endpoints',
          '/admin/v1/instances/{id}/endpoint-health',
          '/v1/webhooks/{instanceId}/endpoints',
        ]),
      )
      for (const list of lists) {
        const path = list.replace(/\{(id|instanceId)\}/, instance.id)
        const key = path.startsWith('/admin') ? ADMIN_KEY : instance.token
        for (const method of ['GET', 'HEAD']) {
          const { status, body } = await api.call({ method, path: `${path}?nonsense=x`, key })
          expect([list, method, status]).toEqual([list, method, 400])
          if (method === 'GET') expect(body.error.details).toMatchObject([{ field: 'nonsense' }])
        }
      }
    })

    test.each([
      ['GET', '/v1/messages/text', 'POST'],
      ['HEAD', '/v1/messages/text', 'POST'],
      ['HEAD', '/v1/events/stream', 'GET'],
      ['DELETE', '/v1/messages/text', 'POST'],
      ['OPTIONS', '/v1/messages/text', 'POST'],
      ['PROPFIND', '/v1/messages/text', 'POST'],
      ['GET', '/v1/messages/media', 'POST'],
      ['POST', '/v1/messages/msg_1', 'DELETE, GET, HEAD, PATCH'],
      ['PATCH', '/v1/webhooks/inst_1', 'DELETE, GET, HEAD, PUT'],
      ['PUT', '/v1/instance', 'GET, HEAD'],
    ])('%s %s is 405 with Allow: %s', async (method, path, allow) => {
      const answer = await api.call({ method, path, key: instance.token })
      expect(answer.status).toBe(405)
      expect(answer.headers.get('allow')).toBe(allow)
      if (method !== 'HEAD') expect(answer.body.error.code).toBe('method_not_allowed')
    })

    test.each([
      ['PUT', '/instances', 'GET, HEAD, POST'],
      ['GET', '/instances/inst_1/events/redeliver', 'POST'],
      ['POST', '/instances/inst_1', 'DELETE, GET, HEAD, PATCH'],
    ])('%s /admin/v1%s is 405 with Allow: %s', async (method, path, allow) => {
      const answer = await api.admin(method, path)
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    })

    test('HEAD answers the headers of GET and no body', async () => {
      const answer = await api.call({ method: 'HEAD', path: '/v1/instance', key: instance.token })
      expect([answer.status, answer.text]).toEqual([200, ''])
      expect(answer.headers.get('ratelimit-limit')).not.toBeNull()
    })

    test('a body over 1 MiB is 413, one of exactly 1 MiB is read', async () => {
      const wrap = (size: number) =>
        JSON.stringify({ to: '1', text: 'x', pad: '' }).replace('"pad":""', () => `"pad":"${'x'.repeat(size - 30)}"`)
      const exact = wrap(1_048_576)
      expect(Buffer.byteLength(exact)).toBe(1_048_576)
      expect((await api.send(instance, exact)).body.error.code).toBe('invalid_phone_number')
      const over = await api.send(instance, `${exact} `)
      expect([over.status, over.body.error.code]).toEqual([413, 'payload_too_large'])
      const far = await api.send(instance, 'x'.repeat(8_000_000))
      expect([far.status, far.body.error.code]).toEqual([413, 'payload_too_large'])
      for (const { body } of [over, far]) expect(body.error.message).toBe('The body is too large: at most 1 MiB.')
    })

    test.each([
      ['/session', '4 KiB'],
      ['/instances/import', '8 MiB'],
    ])('the refusal of a body that is too large for %s names its limit of %s', async (path, limit) => {
      const answer = await fetch(`${api.url}/admin/v1${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
        body: ' '.repeat(8_388_609),
      })
      expect(await answer.json()).toMatchObject({ error: { message: `The body is too large: at most ${limit}.` } })
    })

    test.each([
      'text/plain',
      'application/xml',
      'application/jsonx',
      'application/json-patch+json',
      'x',
      '/',
      'multipart/form-data; boundary=a',
    ])('the media type %s is 415', async type => {
      const answer = await api.send(instance, '{"to":"5511987654321","text":"x"}', { 'content-type': type })
      expect([answer.status, answer.body.error.code]).toEqual([415, 'unsupported_media_type'])
    })

    test('a call without a body may name any media type', async () => {
      const form = { 'content-type': 'application/x-www-form-urlencoded' }
      const created = await api.call({
        method: 'POST',
        path: '/admin/v1/instances',
        key: ADMIN_KEY,
        headers: form,
        body: '',
      })
      expect(created.status).toBe(201)
      const path = `/admin/v1/instances/${created.body.data.id}`
      const headers = { 'content-type': 'text/plain' }
      expect((await api.call({ method: 'DELETE', path, key: ADMIN_KEY, headers })).status).toBe(204)
    })

    test('a body that is compressed or has no media type is 415', async () => {
      const gzip = await api.send(instance, '{}', { 'content-encoding': 'gzip' })
      expect([gzip.status, gzip.body.error.code]).toEqual([415, 'unsupported_media_type'])
      const response = await fetch(`${api.url}/v1/messages/text`, {
        method: 'POST',
        headers: { authorization: `Bearer ${instance.token}` },
        body: new Uint8Array([123, 125]),
      })
      expect(response.status).toBe(415)
    })

    test.each([
      'application/json',
      'application/json; charset=utf-8',
      'Application/JSON',
      'application/json;charset=UTF-8',
    ])('the media type %s is read', async type => {
      const answer = await api.send(instance, '{"to":"5511987654321","text":"x"}', { 'content-type': type })
      expect(answer.status).toBe(202)
    })

    test('no page may frame or execute an answer, nothing is cached, and no other origin may read it', async () => {
      for (const path of ['/v1/instance', '/nope', '/healthz']) {
        const { headers } = await api.call({ path, headers: { origin: 'https://evil.example' } })
        expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
        expect(headers.get('x-content-type-options')).toBe('nosniff')
        expect(headers.get('cache-control')).toBe('no-store')
        expect(headers.get('access-control-allow-origin')).toBeNull()
      }
    })
  })

  test('a request leaves one line in the log, without the token, the text or the query', async () => {
    const before = api.logged.length
    const key = 'idempotency-of-the-log'
    await api.send(
      instance,
      { to: '5511987654321', text: 'secret words' },
      { 'x-idempotency-key': key, 'x-request-id': 'log-1' },
    )
    await api.call({ path: `/v1/instance?token=${instance.token}`, headers: { 'x-request-id': 'log-2' } })
    const lines = api.logged.slice(before)
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatchObject({
      msg: 'request.answered',
      requestId: 'log-1',
      method: 'POST',
      route: '/v1/messages/text',
      status: 202,
      instanceId: instance.id,
      durationMs: expect.any(Number),
    })
    expect(lines[1]).toMatchObject({ requestId: 'log-2', status: 401, code: 'invalid_token' })
    const text = JSON.stringify(lines)
    for (const secret of [instance.token, 'secret words', key, '5511987654321']) expect(text).not.toContain(secret)
  })

  test('/ redirects a browser to the reference', async () => {
    const answer = await api.call({ path: '/' })
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/docs/'])
  })
})
