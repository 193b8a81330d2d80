import { randomBytes } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { Derivations } from '../../../../src/api/admin/sign-in/passwords/scrypt.ts'
import { Refusal } from '../../../../src/domain/refusal.ts'
import { ADMIN_KEY, API_SETTINGS, ApiHarness } from '../harness.ts'

const PASSWORD = 'correct horse battery'
/** Longer than any password, so that the service refuses it without the work of a hash. */
const WRONG = 'x'.repeat(300)

/** A service that believes `x-forwarded-for`, so that one test calls from many addresses. */
async function start() {
  const api = await ApiHarness.start({ options: { settings: { ...API_SETTINGS, trustedProxies: ['127.0.0.1'] } } })
  const call = (path: string, body: object, from: string, cookie = '') =>
    api.call({ method: 'POST', path: `/admin/v1${path}`, body, headers: { 'x-forwarded-for': from, cookie } })
  const signIn = (from: string, body: { name?: string; key: string }, cookie?: string) =>
    call('/session', body, from, cookie)
  const create = async (name: string) => {
    const { body } = await api.admin('POST', '/accounts', { name, role: 'viewer' })
    const accept = (token: string, from: string) =>
      call('/invitations/accept', { token: token.split('#')[1], password: PASSWORD }, from)
    const accepted = await accept(body.data.url, '192.0.2.1')
    const session = accepted.headers.getSetCookie().find(value => value.startsWith('pombal_session='))
    return { id: body.data.account.id as string, cookie: deviceCookieOf(accepted.headers), session: session!, accept }
  }
  return { api, signIn, create, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() }
}

function deviceCookieOf(headers: Headers): string {
  const cookie = headers.getSetCookie().find(value => value.startsWith('pombal_device='))
  expect(cookie).toMatch(/; Path=\/admin\/v1\/session; Max-Age=31536000; HttpOnly; SameSite=Strict$/)
  return cookie!.split(';')[0]!
}

test('right passwords do not use up the limit of wrong ones', async () => {
  await using service = await start()
  await service.create('Ana')
  const signIn = (key: string) => service.signIn('203.0.113.7', { name: 'Ana', key })
  for (let n = 0; n < 11; n += 1) expect((await signIn(PASSWORD)).status).toBe(200)
  for (let n = 0; n < 9; n += 1) expect((await signIn(WRONG)).status).toBe(401)
  expect((await signIn(PASSWORD)).status).toBe(200)
  expect([(await signIn(WRONG)).status, (await signIn(PASSWORD)).status]).toEqual([401, 429])
})

test.each([
  ['an account', 'Ana'],
  ['the panel', undefined],
])(
  'guessing the password of %s from many networks is limited, and leaves known browsers, other names and the admin key working',
  async (_, name) => {
    await using service = await start()
    const { id, cookie, accept } = await service.create('Ana')
    await service.create('Zoe')
    await service.api.admin('PUT', '/password', { password: PASSWORD })
    const signIn = (from: string, more: object = {}, known?: string) =>
      service.signIn(from, { ...(name && { name }), key: PASSWORD, ...more }, known)
    const device = name ? cookie : deviceCookieOf((await signIn('192.0.2.1')).headers)

    const statuses: number[] = []
    for (let n = 0; n < 102; n += 1) statuses.push((await signIn(`198.51.${n}.1`, { key: WRONG })).status)
    expect(statuses).toEqual([...Array(100).fill(401), 429, 429])
    const refused = await signIn('192.0.2.2')
    expect([refused.status, refused.body.error.code]).toEqual([429, 'too_many_attempts'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3_000)

    // A browser that signed in before, another name, the admin key, and a new link.
    expect((await signIn('192.0.2.2', {}, device)).status).toBe(200)
    expect((await service.signIn('192.0.2.2', { name: 'Zoe', key: PASSWORD })).status).toBe(200)
    expect((await service.signIn('192.0.2.2', { key: ADMIN_KEY })).status).toBe(200)
    const invited = await service.api.admin('POST', `/accounts/${id}/invitation`)
    expect((await accept(invited.body.data.url, '192.0.2.2')).status).toBe(200)
  },
)

test('a sign-in that is refused because too many passwords wait to be checked is not recorded as a failed one', async () => {
  await using service = await start()
  const signIn = (key: string) => service.signIn('203.0.113.7', { name: 'nobody', key })
  const derive = vi.spyOn(Derivations.prototype, 'derive').mockRejectedValueOnce(new Refusal('service_unavailable'))
  try {
    expect((await signIn(PASSWORD)).status).toBe(503)
    expect(derive).toHaveBeenCalledOnce()
  } finally {
    derive.mockRestore()
  }
  const list = async () => (await service.api.admin('GET', '/audit?action=signIn')).body.data
  expect(await list()).toEqual([])
  expect((await signIn(WRONG)).status).toBe(401)
  expect(await list()).toMatchObject([{ by: 'nobody', details: { succeeded: false, notRecordedBefore: 0 } }])
})

test('the cookie of a known browser counts for its name only, and has a limit of its own', async () => {
  await using service = await start()
  const [{ cookie }] = [await service.create('Ana'), await service.create('Zoe')]
  const guess = (name: string, known: string, key = WRONG) => service.signIn('203.0.113.7', { name, key }, known)
  const forged = `pombal_device=${cookie.slice(14, 30)}.${randomBytes(32).toString('base64url')}`
  for (let n = 0; n < 5; n += 1) {
    expect((await guess('Zoe', cookie)).status).toBe(401)
    expect((await guess('Ana', forged)).status).toBe(401)
  }
  expect([(await guess('Zoe', cookie, PASSWORD)).status, (await guess('Ana', forged, PASSWORD)).status]).toEqual([
    429, 429,
  ])
  for (let n = 0; n < 10; n += 1) expect((await guess(' ANA', cookie)).status).toBe(401)
  expect((await guess('Ana', cookie, PASSWORD)).status).toBe(429)
})

test('the networks of one IPv6 site share a limit', async () => {
  await using service = await start()
  const guess = async (from: string, n: number) =>
    (await service.signIn(from, { name: `nobody ${n}`, key: WRONG })).status
  for (let n = 0; n < 50; n += 1) expect(await guess(`2001:db8:1:${n}::1`, n)).toBe(401)
  expect(await guess('2001:db8:1:50::1', 50)).toBe(429)
  expect(await guess('2001:db8:2::1', 51)).toBe(401)
})

test('a new password ends the separate limit of browsers that knew the old one, except the one that changed it', async () => {
  await using service = await start()
  const { cookie: former, session } = await service.create('Ana')
  const changed = await service.api.call({
    method: 'POST',
    path: '/admin/v1/session/password',
    body: { oldPassword: PASSWORD, newPassword: `new ${PASSWORD}` },
    headers: { cookie: session.split(';')[0]!, origin: service.api.url },
  })
  expect(changed.status).toBe(204)
  const signIn = (key: string, cookie: string) => service.signIn('203.0.113.7', { name: 'Ana', key }, cookie)
  for (let n = 0; n < 10; n += 1) expect((await signIn(WRONG, former)).status).toBe(401)
  expect((await signIn(`new ${PASSWORD}`, former)).status).toBe(429)
  expect((await service.signIn('203.0.113.7', { name: 'nobody', key: WRONG })).status).toBe(429)
  expect((await signIn(`new ${PASSWORD}`, deviceCookieOf(changed.headers))).status).toBe(200)
})
