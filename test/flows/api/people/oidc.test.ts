import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { OidcService } from '../../../oidc/service.ts'
import { startService } from '../../../service.ts'

const PASSWORD = 'correct horse battery'

let oidc: OidcService
beforeEach(async () => {
  oidc = await OidcService.start()
})
afterEach(() => oidc[Symbol.asyncDispose]())

function addPerson(login: string, email = `${login}@example.com`, isVerified = true): void {
  oidc.provider.people.set(login, { email, email_verified: isVerified })
}

describe('somebody whom the provider knows', () => {
  test('signs in to the invited account that has the verified e-mail address as its name; no password is needed', async () => {
    const { id, token } = await oidc.invite('Ana@Example.com', 'operator')
    addPerson('ana')
    const browser = oidc.browser()
    const signedIn = await oidc.signIn('ana', browser)
    expect(signedIn).toMatchObject({ status: 200, body: { data: { account: { id, role: 'operator' } } } })
    expect((await browser.send('GET', '/session')).body.data.account.id).toBe(id)
    expect(signedIn.cookies.find(set => set.startsWith('pombal_session='))).toMatch(
      /; Path=\/admin\/v1; Max-Age=604800; HttpOnly; SameSite=Strict$/,
    )
    const [account] = (await oidc.admin('GET', '/accounts')).body.data
    expect(account).toMatchObject({ id, active: true, oidc: true, invitationEndsAt: null })
    // The link that is no longer needed has ended.
    const accepted = await oidc.browser().send('POST', '/invitations/accept', { token, password: PASSWORD })
    expect([accepted.status, accepted.code]).toEqual([404, 'invitation_not_found'])
  })

  test('stays with the account when the address at the provider changes, and nobody else gets in by the old address', async () => {
    const { id } = await oidc.invite('ana@example.com')
    await oidc.invite('zoe@example.com')
    addPerson('ana')
    expect((await oidc.signIn('ana')).status).toBe(200)
    addPerson('ana', 'zoe@example.com', false)
    addPerson('mallory', 'ana@example.com')
    expect((await oidc.signIn('ana')).body.data.account.id).toBe(id)
    expect(await oidc.signIn('mallory')).toMatchObject({ status: 403, code: 'oidc_other_login' })
  })

  test('is not bound by the address to an account with a password, but by a link', async () => {
    const { id, token } = await oidc.invite('ana@example.com')
    await oidc.browser().send('POST', '/invitations/accept', { token, password: PASSWORD })
    addPerson('ana')
    const refused = await oidc.signIn('ana')
    expect(refused).toMatchObject({ status: 403, code: 'oidc_other_login' })
    expect(refused.body.error.message).toContain('new link')
    const { body } = await oidc.admin('POST', `/accounts/${id}/invitation`)
    const link = { invitation: body.data.url.split('#')[1] }
    expect((await oidc.signIn('ana', oidc.browser(), link)).body.data.account.id).toBe(id)
    expect((await oidc.signIn('ana')).body.data.account.id).toBe(id)
  })

  test('can end all other sessions, and sign out', async () => {
    const { id } = await oidc.invite('ana@example.com')
    addPerson('ana')
    const [one, two] = [oidc.browser(), oidc.browser()]
    for (const browser of [one, two]) expect((await oidc.signIn('ana', browser)).body.data.account.id).toBe(id)
    expect((await two.send('DELETE', '/sessions')).status).toBe(204)
    const statuses = [one, two].map(async browser => (await browser.send('GET', '/session')).status)
    expect(await Promise.all(statuses)).toEqual([401, 200])
    expect((await two.send('DELETE', '/session')).status).toBe(204)
    expect((await two.send('GET', '/session')).status).toBe(401)
  })

  test('without an account, or with an address that is not verified, is refused, and nothing changes', async () => {
    await oidc.invite('ana@example.com')
    addPerson('stranger')
    expect(await oidc.signIn('stranger')).toMatchObject({ status: 403, code: 'oidc_unknown_account' })
    addPerson('ana', 'ana@example.com', false)
    expect(await oidc.signIn('ana')).toMatchObject({ status: 403, code: 'oidc_email_unverified' })
    for (const verified of [undefined, 'false', '']) {
      oidc.provider.people.set('ana', {
        email: 'ana@example.com',
        ...(verified !== undefined && { email_verified: verified }),
      })
      expect(await oidc.signIn('ana')).toMatchObject({ status: 403, code: 'oidc_email_unverified' })
    }
    oidc.provider.people.set('ana', {})
    expect(await oidc.signIn('ana')).toMatchObject({ status: 403, code: 'oidc_email_unverified' })
    // These addresses look like the name to Unicode. They may belong to other people.
    for (const email of ['ａna@example.com', 'ana@example.com\u200b', ' ana@example.com ', 'ana@exampl\u212f.com']) {
      addPerson('ana', email)
      expect(await oidc.signIn('ana'), email).toMatchObject({ status: 403, code: 'oidc_unknown_account' })
    }
    expect((await oidc.admin('GET', '/accounts')).body.data).toMatchObject([{ active: false, oidc: false }])
    // Amazon Cognito writes the boolean as text.
    oidc.provider.people.set('ana', { email: 'ana@example.com', email_verified: 'true' })
    expect((await oidc.signIn('ana')).status).toBe(200)
  })

  test('whose account is removed is signed out and can no longer sign in', async () => {
    const { id } = await oidc.invite('ana@example.com')
    addPerson('ana')
    const browser = oidc.browser()
    await oidc.signIn('ana', browser)
    await oidc.admin('DELETE', `/accounts/${id}`)
    expect((await browser.send('GET', '/session')).status).toBe(401)
    expect(await oidc.signIn('ana')).toMatchObject({ status: 403, code: 'oidc_unknown_account' })
  })
})

describe('an invitation', () => {
  test('is accepted with a login instead of a password: no e-mail address is needed, and the link works once', async () => {
    const { id, token } = await oidc.invite('Ana')
    oidc.provider.people.set('ana', {})
    const signedIn = await oidc.signIn('ana', oidc.browser(), { invitation: token })
    expect(signedIn).toMatchObject({ status: 200, body: { data: { account: { id } } } })
    expect((await oidc.signIn('ana')).body.data.account.id).toBe(id)
    const again = await oidc.browser().send('POST', '/session/oidc', { invitation: token })
    expect([again.status, again.code]).toEqual([404, 'invitation_not_found'])
  })

  test('that ends between the two steps, or is for another account of the same login, is refused', async () => {
    const { id, token } = await oidc.invite('Ana')
    const zoe = await oidc.invite('Zoe')
    addPerson('ana')
    const browser = oidc.browser()
    const back = await oidc.provider.visit(await browser.begin({ invitation: token }), 'ana')
    const { body } = await oidc.admin('POST', `/accounts/${id}/invitation`)
    expect(await browser.finish(back.search)).toMatchObject({ status: 404, code: 'invitation_not_found' })
    const link = { invitation: body.data.url.split('#')[1] }
    expect((await oidc.signIn('ana', oidc.browser(), link)).status).toBe(200)
    const taken = await oidc.signIn('ana', oidc.browser(), { invitation: zoe.token })
    expect([taken.status, taken.code]).toEqual([409, 'oidc_login_taken'])
  })

  test('a new link that is accepted with a password ends the login, with its sessions', async () => {
    const { id } = await oidc.invite('ana@example.com')
    addPerson('ana')
    const old = oidc.browser()
    await oidc.signIn('ana', old)
    const { body } = await oidc.admin('POST', `/accounts/${id}/invitation`)
    const accepted = { token: body.data.url.split('#')[1], password: PASSWORD }
    expect((await oidc.browser().send('POST', '/invitations/accept', accepted)).status).toBe(200)
    expect((await old.send('GET', '/session')).status).toBe(401)
    expect((await oidc.signIn('ana')).code).toBe('oidc_other_login')
    expect((await oidc.admin('GET', '/accounts')).body.data).toMatchObject([{ id, active: true, oidc: false }])
  })

  test('a new link replaces the login of an account', async () => {
    const { id, token } = await oidc.invite('ana@example.com')
    addPerson('ana')
    addPerson('ana-again', 'ana@example.com')
    const old = oidc.browser()
    await oidc.signIn('ana', old, { invitation: token })
    const { body } = await oidc.admin('POST', `/accounts/${id}/invitation`)
    const link = { invitation: body.data.url.split('#')[1] }
    expect((await oidc.signIn('ana-again', oidc.browser(), link)).body.data.account.id).toBe(id)
    expect((await old.send('GET', '/session')).status).toBe(401)
    expect((await oidc.signIn('ana')).code).toBe('oidc_other_login')
  })
})

test('the audit and the log record each sign-in with its method, and why one failed; neither contains a code or a claim', async () => {
  const { id } = await oidc.invite('ana@example.com')
  const bea = await oidc.invite('Bea')
  await oidc.browser().send('POST', '/invitations/accept', { token: bea.token, password: PASSWORD })
  await oidc.browser().send('POST', '/session', { name: 'Bea', key: PASSWORD })
  await oidc.browser().send('POST', '/session', { key: oidc.service.adminKey })
  addPerson('ana')
  addPerson('stranger')
  const browser = oidc.browser()
  const back = await oidc.provider.visit(await browser.begin(), 'ana')
  expect((await browser.finish(back.search)).status).toBe(200)
  expect((await oidc.signIn('stranger')).status).toBe(403)
  expect(await oidc.auditOf('signIn')).toMatchObject([
    { by: 'nobody', details: { method: 'oidc', code: 'oidc_unknown_account', succeeded: false } },
    { by: id, details: { method: 'oidc' } },
    { by: 'panel', details: { method: 'admin_key' } },
    { by: bea.id, details: { method: 'password' } },
    { by: bea.id, details: { method: 'password' } },
  ])
  expect(await oidc.auditOf('finishOidcSignIn')).toMatchObject([{ by: id, details: { boundTo: oidc.provider.issuer } }])
  const lines = oidc.service.logLines.filter(({ msg, action }) => msg === 'audit' && action === 'finishOidcSignIn')
  expect(lines).toMatchObject([{ auditSeq: expect.any(Number), address: expect.stringMatching(/^192\.0\.2\./) }])
  expect(oidc.service.wholeOutput).not.toContain(back.searchParams.get('code'))
  expect(oidc.service.wholeOutput).not.toContain('ana@example.com')
  expect((await oidc.admin('GET', '/audit/check')).body.data.brokenAt).toBeNull()
})

const asked = ({ provider }: OidcService) => provider.requests.filter(line => line.includes('/me')).length

test('the e-mail address may be in the ID token; the provider is asked only whether it is verified, if the token does not say', async () => {
  await using other = await OidcService.start({}, true)
  const [ana, zoe] = [await other.invite('ana@example.com'), await other.invite('zoe@example.com')]
  for (const login of ['ana', 'zoe']) {
    other.provider.people.set(login, { email: `${login}@example.com`, email_verified: true })
  }
  expect((await other.signIn('ana')).body.data.account.id).toBe(ana.id)
  expect(asked(other)).toBe(0)
  other.provider.claims = { email_verified: undefined }
  expect((await other.signIn('zoe')).body.data.account.id).toBe(zoe.id)
  expect(asked(other)).toBe(1)
})

test('the provider is asked for an e-mail address only if an unknown login has no link; a failure counts as no address', async () => {
  const [ana, zoe] = [await oidc.invite('ana@example.com'), await oidc.invite('Zoe')]
  for (const login of ['ana', 'zoe']) addPerson(login)
  expect((await oidc.signIn('ana')).status).toBe(200)
  expect(asked(oidc)).toBe(1)
  oidc.provider.fault = { is: 'status 503', at: /^\/me/ }
  expect((await oidc.signIn('ana')).body.data.account.id).toBe(ana.id)
  expect((await oidc.signIn('zoe', oidc.browser(), { invitation: zoe.token })).body.data.account.id).toBe(zoe.id)
  expect(asked(oidc)).toBe(1)
  for (const is of ['status 503', 'garbage', 'endless'] as const) {
    oidc.provider.fault = { is, at: /^\/me/ }
    expect(await oidc.signIn('stranger'), is).toMatchObject({ status: 403, code: 'oidc_email_unverified' })
  }
  const reasons = oidc.service.logLines.filter(({ msg }) => msg === 'oidc.email_unreadable').map(({ reason }) => reason)
  expect(reasons).toEqual([
    expect.stringContaining('status 503'),
    expect.any(String),
    expect.stringContaining('more than 1 MiB'),
  ])
})

test('the last owner may be one who signs in with the provider; after a restart everything holds', async () => {
  const { id } = await oidc.invite('ana@example.com', 'owner')
  addPerson('ana')
  const browser = oidc.browser()
  await oidc.signIn('ana', browser)
  expect((await browser.send('DELETE', `/accounts/${id}`)).code).toBe('last_owner')
  await oidc.service.restart('SIGKILL')
  expect((await browser.send('GET', '/session')).status).toBe(200)
  expect((await oidc.signIn('ana')).body.data.account.id).toBe(id)
})

test('without the settings the panel offers no provider, and the calls say so', async () => {
  const service = await startService()
  const read = async (path: string, method = 'GET') => {
    const init = { method, ...(method === 'POST' && { headers: { 'content-type': 'application/json' }, body: '{}' }) }
    return (await (await fetch(`${service.url}/admin/v1${path}`, init)).json()) as object
  }
  try {
    expect(await read('/sign-in')).toEqual({ data: { oidc: null } })
    expect(await read('/session/oidc', 'POST')).toMatchObject({ error: { code: 'oidc_not_configured' } })
  } finally {
    await service.dispose()
  }
  expect((await oidc.browser().send('GET', '/sign-in')).body).toEqual({ data: { oidc: { name: 'Castle' } } })
})
