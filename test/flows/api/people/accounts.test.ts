import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noteSecret } from '../../../logs/log-capture.ts'
import { ADMIN_KEY, ApiHarness } from '../harness.ts'
import { createPerson, startSession } from './people.ts'

const PASSWORD = 'correct horse battery'

describe('accounts', () => {
  let api: ApiHarness

  beforeAll(async () => {
    api = await ApiHarness.start()
    noteSecret(PASSWORD)
  })
  afterAll(() => api[Symbol.asyncDispose]())

  const invite = async (name: string, role = 'viewer', more: object = {}) => {
    const { status, body } = await api.admin('POST', '/accounts', { name, role, ...more })
    expect(status).toBe(201)
    const token = String(body.data.url).split('#')[1]!
    noteSecret(token)
    return { id: body.data.account.id as string, url: body.data.url as string, token }
  }
  const accept = (token: string, password = PASSWORD) =>
    api.call({ method: 'POST', path: '/admin/v1/invitations/accept', body: { token, password } })
  const signIn = (name: string, key: string) =>
    api.call({ method: 'POST', path: '/admin/v1/session', body: { name, key } })
  const cookieOf = (answer: { headers: Headers }) => ({
    cookie: answer.headers.get('set-cookie')!.split(';')[0]!,
    origin: api.url,
  })

  test('an invited person sets a password once, is signed in, and can sign in again by name', async () => {
    const instances = [(await api.createInstance()).id]
    const { id, url, token } = await invite('Ana@example.com', 'operator', { instances })
    expect(url).toMatch(/^\/invitation#[A-Za-z0-9_-]{43}$/)
    expect((await signIn('ana@example.com', PASSWORD)).status).toBe(401)
    const accepted = await accept(token)
    const account = { id, name: 'Ana@example.com', role: 'operator', instances, hasPassword: true }
    expect([accepted.status, accepted.body.data.account]).toEqual([200, account])
    const session = await api.call({ path: '/admin/v1/session', headers: cookieOf(accepted) })
    expect(session.body.data.account).toEqual(account)

    const again = await accept(token)
    expect([again.status, again.body.error.code]).toEqual([404, 'invitation_not_found'])
    expect((await signIn(' ANA@example.com', PASSWORD)).body.data.account).toEqual(account)
    expect((await signIn('ana@example.com', 'wrong password')).status).toBe(401)
    expect((await signIn('nobody', PASSWORD)).status).toBe(401)
    const text = JSON.stringify(api.logged)
    for (const secret of [token, PASSWORD]) expect(text).not.toContain(secret)
    const line = api.logged.find(({ msg, action }) => msg === 'audit' && action === 'acceptInvitation')
    const { data } = (await api.admin('GET', `/audit?limit=200&by=${id}`)).body
    expect(data.map((record: { action: string; byName: string }) => [record.action, record.byName])).toEqual([
      ['signIn', 'Ana@example.com'],
      ['signIn', 'Ana@example.com'],
      ['acceptInvitation', 'Ana@example.com'],
    ])
    const { seq, digest } = data.at(-1)
    expect(line).toMatchObject({ by: `account ${id}`, auditSeq: seq, auditDigest: digest.slice(0, 32) })
  })

  test('a link that is accepted by several calls at the same time costs one hash, and works once', async () => {
    const { token } = await invite('at once')
    const answers = await Promise.all(Array.from({ length: 5 }, () => accept(token)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 503, 503, 503, 503])
    expect((await accept(token)).body.error.code).toBe('invitation_not_found')
  })

  test('a link that has ended is refused, and so are short passwords', async () => {
    const { id, token } = await invite('late')
    expect((await accept(token, 'short')).status).toBe(400)
    await api.store.accounts.invite(id, { digest: randomBytes(32), lastsMs: -1, invitedBy: null })
    expect((await accept(token)).body.error.code).toBe('invitation_not_found')
  })

  test('guessing links and passwords is limited by address', async () => {
    await using guessed = await ApiHarness.start()
    const guess = (path: string, body: object) => guessed.call({ method: 'POST', path: `/admin/v1${path}`, body })
    const statuses: number[] = []
    for (let count = 0; count < 6; count += 1) {
      const token = randomBytes(32).toString('base64url')
      statuses.push((await guess('/invitations/accept', { token, password: PASSWORD })).status)
      statuses.push((await guess('/session', { name: `user ${count}`, key: 'a wrong one' })).status)
    }
    expect(statuses.slice(0, 10)).toEqual(Array.from({ length: 5 }, () => [404, 401]).flat())
    expect(statuses.slice(10)).toEqual([429, 429])
  })

  test('the last owner can be neither removed nor limited; the admin key is always an owner', async () => {
    const owner = await createPerson(api, 'owner')
    const refused = [
      await api.admin('DELETE', `/accounts/${owner.id}`),
      await api.admin('PUT', `/accounts/${owner.id}/access`, { role: 'viewer' }),
    ]
    expect(refused.map(({ status, body }) => [status, body.error.code])).toEqual(Array(2).fill([409, 'last_owner']))
    const other = await createPerson(api, 'owner')
    const path = `/admin/v1/accounts/${owner.id}`
    expect((await api.call({ method: 'DELETE', path, headers: other.headers })).status).toBe(204)
    expect((await api.call({ path: '/admin/v1/session', headers: owner.headers })).status).toBe(401)
    expect((await api.admin('GET', '/accounts')).status).toBe(200)
  })

  test('a person changes their own password with the old one, and is signed out everywhere else', async () => {
    const { id, token } = await invite('Changer')
    const here = cookieOf(await accept(token))
    const elsewhere = cookieOf(await signIn('changer', PASSWORD))
    const newPassword = 'another good password'
    const change = (oldPassword: string, headers = here, next = newPassword) =>
      api.call({
        method: 'POST',
        path: '/admin/v1/session/password',
        headers,
        body: { oldPassword, newPassword: next },
      })
    const read = async (headers: Record<string, string>) =>
      (await api.call({ path: '/admin/v1/session', headers })).status
    const wrong = await change('not my password')
    expect([wrong.status, wrong.body.error.details[0].field]).toEqual([400, 'oldPassword'])
    expect((await change(PASSWORD, here, 'too short')).status).toBe(400)
    expect([await read(here), await read(elsewhere)]).toEqual([200, 200])

    expect((await change(PASSWORD)).status).toBe(204)
    expect([await read(here), await read(elsewhere)]).toEqual([200, 401])
    expect((await signIn('changer', PASSWORD)).status).toBe(401)
    expect((await signIn('changer', newPassword)).status).toBe(200)
    const { data } = (await api.admin('GET', `/audit?by=${id}&action=changeOwnPassword`)).body
    expect(data).toHaveLength(1)
    expect(data[0].details).toEqual({ session: expect.any(String) })
    const withKey = await api.admin('POST', '/session/password', { oldPassword: PASSWORD, newPassword })
    expect([withKey.status, withKey.body.error.code]).toEqual([403, 'forbidden'])
  })

  test('a session that ends while its person changes the password changes nothing', async () => {
    await using ending = await ApiHarness.start({
      store: ({ accounts, sessions }) => ({
        accounts: new Proxy(accounts, {
          get(target, name: keyof typeof accounts) {
            if (name !== 'changePassword') return target[name].bind(target)
            return async (...[id, ...rest]: Parameters<typeof accounts.changePassword>) => {
              await sessions.endOthers(id, null)
              return target.changePassword(id, ...rest)
            }
          },
        }),
      }),
    })
    const { body } = await ending.admin('POST', '/accounts', { name: 'Ana', role: 'viewer' })
    const post = (path: string, json: object, headers = {}) =>
      ending.call({ method: 'POST', path: `/admin/v1${path}`, body: json, headers })
    const token = String(body.data.url).split('#')[1]
    const headers = {
      ...cookieOf(await post('/invitations/accept', { token, password: PASSWORD })),
      origin: ending.url,
    }
    const passwords = { oldPassword: PASSWORD, newPassword: 'another good password' }
    const changed = await post('/session/password', passwords, headers)
    expect([changed.status, changed.body.error.code]).toEqual([401, 'invalid_admin_key'])
    expect((await post('/session', { name: 'Ana', key: PASSWORD })).status).toBe(200)
  })

  test('a session that ends while it sets the password of the panel changes nothing', async () => {
    await using ending = await ApiHarness.start({
      store: ({ sessions }) => ({
        sessions: new Proxy(sessions, {
          get(target, name: keyof typeof sessions) {
            if (name !== 'setPasswordHash') return target[name].bind(target)
            return async (...[hash, keptId, setBy]: Parameters<typeof sessions.setPasswordHash>) => {
              if (keptId !== null) await target.endOthers(setBy ?? null, null)
              return target.setPasswordHash(hash, keptId, setBy)
            }
          },
        }),
      }),
    })
    const call = (method: string, path: string, body: object, headers = {}) =>
      ending.call({ method, path: `/admin/v1${path}`, body, headers })
    const withKey = { ...cookieOf(await call('POST', '/session', { key: ADMIN_KEY })), origin: ending.url }
    const { headers: withAccount } = await createPerson(ending, 'owner')
    for (const headers of [withKey, withAccount]) {
      const set = await call('PUT', '/password', { password: PASSWORD }, headers)
      expect([set.status, set.body.error.code]).toEqual([401, 'invalid_admin_key'])
      expect((await call('POST', '/session', { key: PASSWORD })).status).toBe(401)
    }
    expect((await ending.admin('PUT', '/password', { password: PASSWORD })).status).toBe(204)
    expect((await call('POST', '/session', { key: PASSWORD })).status).toBe(200)
  })

  test('the old password cannot be guessed in a session that somebody left open', async () => {
    const { token } = await invite('Guessed')
    const headers = cookieOf(await accept(token))
    const body = { oldPassword: 'wrong', newPassword: 'another good password' }
    const guess = () => api.call({ method: 'POST', path: '/admin/v1/session/password', headers, body })
    for (let count = 0; count < 10; count += 1) expect((await guess()).status).toBe(400)
    expect((await guess()).body.error.code).toBe('too_many_attempts')
  })

  test('the password of the panel ends with the owner who set it, and the audit says so', async () => {
    const leaving = await createPerson(api, 'owner')
    await createPerson(api, 'owner')
    const password = 'a password of the panel'
    const set = { method: 'PUT', path: '/admin/v1/password', headers: leaving.headers, body: { password } }
    expect((await api.call(set)).status).toBe(204)
    const open = () => api.call({ method: 'POST', path: '/admin/v1/session', body: { key: password } })
    const session = await open()
    const setters = (await api.admin('GET', '/accounts')).body.data.filter(
      (account: { panelPassword: boolean }) => account.panelPassword,
    )
    expect(setters.map(({ id }: { id: string }) => id)).toEqual([leaving.id])

    await api.admin('DELETE', `/accounts/${leaving.id}`)
    expect((await open()).status).toBe(401)
    expect((await api.call({ path: '/admin/v1/session', headers: cookieOf(session) })).status).toBe(401)
    const [record] = (await api.admin('GET', '/audit?action=removeAccount&limit=1')).body.data
    expect(record.details).toEqual({ id: leaving.id, panelPasswordRemoved: true })
  })

  test('a removed owner cannot come back with a link that they created for another owner', async () => {
    const [leaving, staying, other] = [
      await createPerson(api, 'owner'),
      await createPerson(api, 'owner'),
      await createPerson(api, 'owner'),
    ]
    const linkFor = async (id: string, { headers }: typeof leaving) => {
      const path = `/admin/v1/accounts/${id}/invitation`
      return (await api.call({ method: 'POST', path, headers })).body.data.url.split('#')[1] as string
    }
    const kept = await linkFor(staying.id, leaving)
    const foreign = await linkFor(other.id, staying)
    expect((await api.admin('DELETE', `/accounts/${leaving.id}`)).status).toBe(204)
    expect((await accept(kept)).body.error.code).toBe('invitation_not_found')
    expect((await api.call({ path: '/admin/v1/session', headers: staying.headers })).status).toBe(200)
    expect((await accept(foreign)).status).toBe(200)
  })

  test('a change of role takes effect immediately, also in open sessions', async () => {
    const person = await createPerson(api, 'viewer')
    const create = () => api.call({ method: 'POST', path: '/admin/v1/instances', headers: person.headers, body: {} })
    expect((await create()).body.error.code).toBe('forbidden')
    const access = await api.admin('PUT', `/accounts/${person.id}/access`, { role: 'owner' })
    expect([access.status, access.body.data.role]).toEqual([200, 'owner'])
    expect((await create()).status).toBe(201)
    expect((await api.admin('PUT', `/accounts/${person.id}/access`, { role: 'viewer' })).status).toBe(200)
    expect((await create()).status).toBe(403)
  })

  test('a person lists and ends only their own sessions, and one call ends all of these but the current one', async () => {
    const [ana, zoe] = [await createPerson(api, 'viewer'), await createPerson(api, 'viewer')]
    const list = async (headers: Record<string, string>) =>
      (await api.call({ path: '/admin/v1/sessions', headers })).body.data as { id: string; current: boolean }[]
    const [session] = await list(zoe.headers)
    await api.call({ method: 'DELETE', path: `/admin/v1/sessions/${session!.id}`, headers: ana.headers })
    expect(await list(zoe.headers)).toHaveLength(1)
    const second = await startSession(api, ana.id)
    expect(await list(ana.headers)).toHaveLength(2)
    const ended = await api.call({ method: 'DELETE', path: '/admin/v1/sessions', headers: second.headers })
    expect(ended.status).toBe(204)
    expect((await api.call({ path: '/admin/v1/session', headers: ana.headers })).status).toBe(401)
    expect((await list(second.headers)).map(({ current }) => current)).toEqual([true])
    expect(await list(zoe.headers)).toHaveLength(1)
  })

  test.each([
    { name: '' },
    { role: 'admin' },
    { role: 'owner', instances: ['inst_1'] },
    { instances: ['not an ID'] },
    { instances: 'inst_1' },
  ])('%j is an invalid request', async change => {
    const answer = await api.admin('POST', '/accounts', { name: 'x', role: 'viewer', ...change })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('an account is limited to instances that exist, and keeps those that were deleted', async () => {
    const [kept, deleted] = [(await api.createInstance()).id, (await api.createInstance()).id]
    const { id } = await invite('Limited', 'viewer', { instances: [kept, deleted] })
    expect((await api.admin('DELETE', `/instances/${deleted}`)).status).toBeLessThan(300)
    const change = (instances: string[]) => api.admin('PUT', `/accounts/${id}/access`, { role: 'operator', instances })
    expect((await change([kept, deleted])).body.data).toMatchObject({ role: 'operator', instances: [kept, deleted] })
    const body = { name: 'x', role: 'viewer', instances: [kept, deleted] }
    for (const answer of [await change([kept, 'inst_nope']), await api.admin('POST', '/accounts', body)])
      expect([answer.status, answer.body.error.details[0].field]).toEqual([400, 'instances'])
  })

  test('names are unique, and unknown accounts are not found', async () => {
    await invite('Twice')
    const answer = await api.admin('POST', '/accounts', { name: 'TWICE', role: 'viewer' })
    expect([answer.status, answer.body.error.code]).toEqual([409, 'account_exists'])
    const missing = [
      await api.admin('PUT', '/accounts/acc_missing/access', { role: 'viewer' }),
      await api.admin('DELETE', '/accounts/acc_missing'),
      await api.admin('POST', '/accounts/acc_missing/invitation'),
    ]
    expect(missing.map(({ body }) => body.error.code)).toEqual(Array(3).fill('account_not_found'))
  })
})
