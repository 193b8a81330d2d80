import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMIN_KEY, type Answer, API_SETTINGS, ApiHarness, type Created } from '../harness.ts'

const PASSWORD = 'a password that is long enough'

let api: ApiHarness
let instance: Created
beforeAll(async () => {
  api = await ApiHarness.start()
  instance = await api.createInstance()
})
afterAll(() => api[Symbol.asyncDispose]())

async function signIn(key: string, headers: Record<string, string> = {}): Promise<{ answer: Answer; cookie: string }> {
  const answer = await api.call({ method: 'POST', path: '/admin/v1/session', body: { key }, headers })
  return { answer, cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' }
}

describe('a session', () => {
  test('is never one that a stranger chose: signing in always creates a new one', async () => {
    const chosen = `pombal_session=${'f'.repeat(43)}`
    const { cookie } = await signIn(ADMIN_KEY, { cookie: chosen })
    expect(cookie).not.toBe(chosen)
    expect((await api.call({ path: '/admin/v1/session', headers: { cookie: chosen } })).status).toBe(401)
    const again = await signIn(ADMIN_KEY, { cookie })
    expect(again.cookie).not.toBe(cookie)
  })

  test('is never one that another host of the domain planted, behind https', async () => {
    const settings = { ...API_SETTINGS, publicUrl: new URL('https://pombal.example') }
    await using served = await ApiHarness.start({ options: { settings } })
    const body = { key: ADMIN_KEY }
    const { headers } = await served.call({ method: 'POST', path: '/admin/v1/session', body })
    const [cookie = ''] = headers.get('set-cookie')!.split(';')
    const planted = cookie.replace('__Host-', '')
    const read = (sent: string) => served.call({ path: '/admin/v1/session', headers: { cookie: sent } })
    expect((await read(planted)).status).toBe(401)
    expect((await read(`pombal_session=${'f'.repeat(43)}; ${cookie}`)).status).toBe(200)
    const signedOut = await served.call({
      method: 'DELETE',
      path: '/admin/v1/session',
      headers: { cookie, 'sec-fetch-site': 'same-origin' },
    })
    expect(signedOut.headers.get('set-cookie')).toMatch(/^__Host-pombal_session=; Path=\/; Max-Age=0; .*; Secure$/)
    expect((await read(cookie)).status).toBe(401)
  })

  test('is read from its cookie only', async () => {
    const { cookie } = await signIn(ADMIN_KEY)
    const token = cookie.split('=')[1]
    const tries = [
      api.call({ path: `/admin/v1/session?pombal_session=${token}` }),
      api.call({ path: '/admin/v1/session', key: token }),
      api.call({ path: '/admin/v1/session', headers: { 'x-pombal-session': token! } }),
      api.call({ path: `/admin/v1/session;pombal_session=${token}` }),
    ]
    for (const { status } of await Promise.all(tries)) expect(status).toBe(401)
  })

  test('never reveals its token again, in an answer or in the log', async () => {
    const { cookie } = await signIn(ADMIN_KEY)
    const token = cookie.split('=')[1]!
    for (const path of ['/admin/v1/session', '/admin/v1/sessions']) {
      expect((await api.call({ path, headers: { cookie } })).text).not.toContain(token)
    }
    expect(JSON.stringify(api.logged)).not.toContain(token)
  })

  test("gives no access to /v1, and an instance's token none to the management API", async () => {
    const { cookie } = await signIn(ADMIN_KEY)
    expect((await api.call({ path: '/v1/instance', headers: { cookie } })).status).toBe(401)
    expect((await api.call({ path: '/v1/instance', key: ADMIN_KEY })).status).toBe(401)
    expect((await api.call({ path: '/admin/v1/instances', key: instance.token })).status).toBe(401)
    expect((await api.call({ path: '/metrics', key: instance.token })).status).toBe(401)
  })
})

describe('a page of another site', () => {
  const writes: [string, string, unknown][] = [
    ['POST', '/instances', {}],
    ['POST', '/instances/:id/token', undefined],
    ['POST', '/instances/:id/logout', undefined],
    ['PUT', '/instances/:id/webhook', { url: 'https://evil.example' }],
    ['POST', '/instances/:id/webhook/secret', undefined],
    ['POST', '/instances/:id/messages', { to: '5511987654321', text: 'x' }],
    ['PUT', '/password', { password: PASSWORD }],
    ['DELETE', '/session', undefined],
    ['DELETE', '/instances/:id', undefined],
  ]
  const sites: [string, Record<string, string>][] = [
    ['elsewhere', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['on another port of this host', { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' }],
    ['of an old browser', { origin: 'https://evil.example' }],
    ['without an origin', { origin: 'null' }],
    ['that sends nothing about itself', {}],
  ]

  test.each(sites)('%s cannot use the session of its visitor', async (_, from) => {
    const { cookie } = await signIn(ADMIN_KEY)
    for (const [method, path, body] of writes) {
      const target = `/admin/v1${path.replace(':id', instance.id)}`
      const answer = await api.call({ method, path: target, headers: { cookie, ...from }, body })
      expect([method, path, answer.status, answer.body.error.code]).toEqual([method, path, 403, 'cross_site_request'])
    }
    expect((await api.call({ path: `/v1/instance`, key: instance.token })).status).toBe(200)
  })

  test('may not read any answer', async () => {
    const { cookie } = await signIn(ADMIN_KEY)
    const headers = { cookie, origin: 'https://evil.example', 'access-control-request-method': 'DELETE' }
    for (const [method, path] of [
      ['GET', '/admin/v1/instances'],
      ['OPTIONS', '/admin/v1/instances'],
      ['GET', '/v1/instance'],
      ['GET', '/'],
    ] as const) {
      const answer = await api.call({ method, path, headers })
      for (const name of answer.headers.keys()) expect(name).not.toMatch(/^access-control-/)
    }
  })

  test('cannot sign its visitor in with a form, because only JSON is accepted', async () => {
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x']) {
      const headers = { 'content-type': type, origin: 'https://evil.example' }
      const body = JSON.stringify({ key: ADMIN_KEY })
      const answer = await api.call({ method: 'POST', path: '/admin/v1/session', headers, body })
      expect([answer.status, answer.headers.get('set-cookie')]).toEqual([415, null])
    }
  })
})

test('no answer of any kind can be shown inside another page', async () => {
  const { cookie } = await signIn(ADMIN_KEY)
  const paths = [
    '/',
    '/docs/',
    '/sign-in',
    '/nope',
    '/healthz',
    '/admin/v1/instances',
    '/admin/v1/nope',
    '/openapi.json',
  ]
  for (const path of paths) {
    const { headers } = await api.call({ path, headers: { cookie } })
    expect([path, headers.get('content-security-policy')]).toEqual([
      path,
      expect.stringContaining("frame-ancestors 'none'"),
    ])
    expect([path, headers.get('x-content-type-options')]).toEqual([path, 'nosniff'])
  }
})

describe('guessing', () => {
  test('a password is checked ten times a minute at most, and the administrator is never locked out', async () => {
    await using fresh = await ApiHarness.start()
    const session = (key: string, more: Record<string, string> = {}) =>
      fresh.call({ method: 'POST', path: '/admin/v1/session', body: { key }, headers: more })
    await fresh.admin('PUT', '/password', { password: PASSWORD })
    // All are sent at the same time, and each has a header that claims another address.
    const guesses = Array.from({ length: 40 }, (_, guess) =>
      session(`wrong ${guess}`, { 'x-forwarded-for': `10.0.0.${guess}` }),
    )
    const statuses = (await Promise.all(guesses)).map(({ status }) => status).toSorted()
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(30).fill(429)])
    const refused = await session(PASSWORD)
    expect([refused.status, refused.body.error.code]).toEqual([429, 'too_many_attempts'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await session(ADMIN_KEY)).status).toBe(200)
  })

  test("through a trusted proxy counts against the guesser's address, whatever address the guesser claims", async () => {
    const settings = { ...API_SETTINGS, trustedProxies: ['127.0.0.1', '10.1.0.0/16'] }
    await using fresh = await ApiHarness.start({ options: { settings } })
    const guess = async (forwardedFor: string) => {
      const headers = { 'x-forwarded-for': forwardedFor }
      return (await fresh.call({ path: '/admin/v1/instances', key: 'wrong', headers })).status
    }
    for (let n = 0; n < 10; n += 1) expect(await guess(`10.0.0.${n}, 203.0.113.7, 10.1.0.1`)).toBe(401)
    expect(await guess('198.51.100.1, 203.0.113.7')).toBe(429)
    expect(await guess('203.0.113.8')).toBe(401)
    // An invalid address counts as the proxy's.
    for (let n = 0; n < 10; n += 1) expect(await guess(`203.0.113.9:${4_000 + n}`)).toBe(401)
    expect(await guess('203.0.113.9:5000')).toBe(429)
  })

  test('reveals nothing about which instances, messages or tokens exist', async () => {
    const other = await api.createInstance()
    const unknown = await api.call({ path: '/v1/webhooks/inst_000000000000', key: instance.token })
    const existing = await api.call({ path: `/v1/webhooks/${other.id}`, key: instance.token })
    expect([existing.status, withoutRequestId(existing)]).toEqual([unknown.status, withoutRequestId(unknown)])
    const almost = `${other.token.slice(0, -1)}${other.token.endsWith('A') ? 'B' : 'A'}`
    const [wrong, nothing] = [
      await api.call({ path: '/v1/instance', key: almost }),
      await api.call({ path: '/v1/instance' }),
    ]
    expect([wrong.status, withoutRequestId(wrong)]).toEqual([nothing.status, withoutRequestId(nothing)])
  })
})

/** Every response has a request ID of its own. */
function withoutRequestId({ body }: Answer): unknown {
  const { requestId: _, ...error } = body.error
  return error
}
