import { generateKeyPairSync } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { OidcService, type TestBrowser } from '../../../oidc/service.ts'
import { until } from '../../../until.ts'

/** Longer than any request to the provider may take, on a busy machine. */
const PROVIDER_WITHIN_MS = 15_000
const FAILED = { status: 403, code: 'oidc_failed' }
const ENDED = { status: 400, code: 'oidc_attempt_ended' }

let oidc: OidcService
beforeAll(async () => {
  oidc = await OidcService.start()
  await oidc.invite('ana@example.com', 'owner')
  await oidc.invite('mallory@example.com')
  for (const login of ['ana', 'mallory']) addPerson(oidc, login)
  expect((await oidc.signIn('ana')).status).toBe(200)
})
afterAll(() => oidc[Symbol.asyncDispose]())
afterEach(() => {
  oidc.provider.claims = {}
  oidc.provider.foreignKey = null
  oidc.provider.fault = { is: 'none', at: /^/ }
})

function addPerson({ provider }: OidcService, login: string): void {
  provider.people.set(login, { email: `${login}@example.com`, email_verified: true })
}

async function beginAndVisit(login = 'ana', browser: TestBrowser = oidc.browser()) {
  return { browser, back: await oidc.provider.visit(await browser.begin(), login) }
}

/** The query with other values. Undefined removes a parameter. */
function changed(back: URL, values: Record<string, string | undefined>): string {
  const query = new URLSearchParams(back.search)
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) query.delete(name)
    else query.set(name, value)
  }
  return `?${query}`
}

const tokenRequests = () => oidc.provider.requests.filter(line => line === 'POST /token').length

describe('an answer from the provider', () => {
  test('is accepted only with the state of this browser, once; a wrong one is not even sent to the provider', async () => {
    const [own, other] = [await beginAndVisit(), await beginAndVisit('mallory')]
    const before = tokenRequests()
    // A victim is tricked into opening the answer to somebody else's sign-in.
    expect(await own.browser.finish(other.back.search)).toMatchObject(ENDED)
    expect(await oidc.browser().finish(own.back.search)).toMatchObject(ENDED)
    const answers = [
      changed(own.back, { state: undefined }),
      changed(own.back, { state: '' }),
      `${own.back.search}&state=${own.back.searchParams.get('state')}`,
      '',
      '?',
      '?error=access_denied',
      `?state=${'x'.repeat(9_000)}`,
    ]
    for (const answer of answers) {
      const { browser } = await beginAndVisit()
      expect(await browser.finish(answer), answer).toMatchObject(ENDED)
    }
    expect(tokenRequests()).toBe(before)
    // Otherwise another site could end a sign-in.
    expect((await own.browser.finish(own.back.search)).status).toBe(200)
  })

  test('to a sign-in that another tab has replaced does not end the one of the other tab', async () => {
    const first = await beginAndVisit()
    const second = await beginAndVisit('ana', first.browser)
    expect(await first.browser.finish(first.back.search)).toMatchObject(ENDED)
    expect((await second.browser.finish(second.back.search)).status).toBe(200)
  })

  test('cannot be used twice, even with a copy of the cookie', async () => {
    const { browser, back } = await beginAndVisit()
    const { cookie } = browser
    expect((await browser.finish(back.search)).status).toBe(200)
    expect(await browser.finish(back.search)).toMatchObject(ENDED)
    const replayed = await oidc.browser().send('POST', '/session/oidc/finish', { answer: back.search }, { cookie })
    expect(replayed).toMatchObject(FAILED)
  })

  test('with the code of another sign-in is refused, because the code belongs to its verifier and nonce', async () => {
    const [victim, attacker] = [await beginAndVisit('ana'), await beginAndVisit('mallory')]
    const code = attacker.back.searchParams.get('code')!
    expect(await victim.browser.finish(changed(victim.back, { code }))).toMatchObject(FAILED)
  })

  test('of another provider is refused (mix-up)', async () => {
    for (const iss of ['https://other.example', '', undefined]) {
      const { browser, back } = await beginAndVisit()
      const before = tokenRequests()
      expect(await browser.finish(changed(back, { iss })), String(iss)).toMatchObject(FAILED)
      expect(tokenRequests()).toBe(before)
    }
  })

  test('to a cancelled sign-in says so, and any other error is a failure', async () => {
    const browser = oidc.browser()
    const back = await oidc.provider.visit(await browser.begin(), 'ana', 'cancel')
    expect(await browser.finish(back.search)).toMatchObject({ status: 403, code: 'oidc_denied' })
    const error = { error: 'invalid_scope', error_description: '<script>alert(1)</script>' }
    const next = await beginAndVisit()
    expect(await next.browser.finish(changed(next.back, error))).toMatchObject(FAILED)
  })

  const now = () => Math.floor(Date.now() / 1_000)
  test.each([
    ['another nonce', () => ({ nonce: 'x' })],
    ['no nonce', () => ({ nonce: undefined })],
    ['another audience', () => ({ aud: 'other' })],
    ['a second audience', () => ({ aud: ['pombal', 'other'], azp: 'other' })],
    ['another issuer', () => ({ iss: 'https://other.example' })],
    ['no subject', () => ({ sub: undefined })],
    ['an empty subject', () => ({ sub: '' })],
    ['a subject that is too long', () => ({ sub: 'x'.repeat(300) })],
    ['a subject that is not a string', () => ({ sub: { x: 1 } })],
    ['an expiry 5 minutes ago', () => ({ exp: now() - 300 })],
    ['a start in 5 minutes', () => ({ nbf: now() + 300 })],
  ])('whose ID token has %s is refused', async (_, claims) => {
    const { browser, back } = await beginAndVisit()
    oidc.provider.claims = claims()
    expect(await browser.finish(back.search)).toMatchObject(FAILED)
    expect((await browser.send('GET', '/session')).status).toBe(401)
  })

  test('that is refused is logged with the reason and without a claim', async () => {
    const { browser, back } = await beginAndVisit()
    oidc.provider.claims = { exp: now() - 300 }
    await browser.finish(back.search)
    const { reason } = oidc.service.logLines.findLast(({ msg }) => msg === 'oidc.failed')!
    expect(reason).toContain('JWT timestamp')
    expect(reason).not.toContain('ana')
  })

  test("is accepted if the provider's clock differs by less than a minute", async () => {
    for (const claims of [{ exp: now() - 30 }, { nbf: now() + 30, iat: now() + 30 }]) {
      const { browser, back } = await beginAndVisit()
      oidc.provider.claims = claims
      expect((await browser.finish(back.search)).status).toBe(200)
    }
  })

  test('whose ID token is signed with an unknown key is refused', async () => {
    const { browser, back } = await beginAndVisit()
    oidc.provider.foreignKey = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
    expect(await browser.finish(back.search)).toMatchObject(FAILED)
  })

  test('never leads to an error of the service, whatever it contains', async () => {
    const bodies: unknown[] = [{}, { answer: 1 }, { answer: 'x'.repeat(13_000) }, { answer: 'x'.repeat(20_000) }]
    for (const body of bodies) {
      const { browser } = await beginAndVisit()
      const { status } = await browser.send('POST', '/session/oidc/finish', body as object)
      expect([400, 413]).toContain(status)
    }
    const pieces = [
      '%',
      '%00',
      '%ff',
      '#',
      '?',
      '&',
      '=',
      '\u0000',
      '\ud800',
      'code',
      'iss',
      'response=x',
      'id_token=x',
    ]
    for (let seed = 0; seed < 40; seed += 1) {
      const { browser, back } = await beginAndVisit()
      const state = back.searchParams.get('state')
      const odd = [...Array(1 + (seed % 6)).keys()].map(n => pieces[(seed * 7 + n * 5) % pieces.length]).join('')
      const { status, code } = await browser.finish(`?state=${state}&code=${odd}&${odd}`)
      expect([`403 oidc_failed`, `400 oidc_attempt_ended`], odd).toContain(`${status} ${code}`)
    }
    expect(oidc.service.logLines.filter(({ msg }) => msg === 'request.failed')).toEqual([])
  })
})

describe('a request', () => {
  test('from another site, or from the panel at an address other than PUBLIC_URL, can neither begin nor finish a sign-in', async () => {
    const { browser, back } = await beginAndVisit()
    const foreign = [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }, { origin: 'null' }]
    for (const headers of foreign) {
      for (const [path, body] of [
        ['/session/oidc', {}],
        ['/session/oidc/finish', { answer: back.search }],
      ] as const) {
        const refused = await browser.send('POST', path, body, headers)
        expect([refused.status, refused.code, refused.cookies]).toEqual([403, 'cross_site_request', []])
      }
    }
    const { port } = new URL(oidc.service.url!)
    const elsewhere = { 'sec-fetch-site': 'same-origin', origin: `http://localhost:${port}` }
    const refused = await browser.send('POST', '/session/oidc', {}, elsewhere)
    expect([refused.status, refused.code]).toEqual([409, 'oidc_wrong_address'])
    expect(refused.body.error.message).toContain(new URL(oidc.service.url!).origin)
    expect((await browser.finish(back.search)).status).toBe(200)
  })

  test('with a cookie that the service did not make is refused', async () => {
    const { browser, back } = await beginAndVisit()
    const [content = '', signature = ''] = browser.cookie.replace('pombal_oidc=', '').split('.')
    const attempt = JSON.parse(Buffer.from(content, 'base64url').toString())
    const later = Buffer.from(JSON.stringify({ ...attempt, endsAt: attempt.endsAt + 1 })).toString('base64url')
    for (const value of [`${later}.${signature}`, `${content}.${'A'.repeat(43)}`, content, `.${signature}`, '']) {
      const headers = { cookie: `pombal_oidc=${value}` }
      const answer = await oidc.browser().send('POST', '/session/oidc/finish', { answer: back.search }, headers)
      expect(answer, value).toMatchObject(ENDED)
    }
  })

  test('without a sign-in that this browser began is not counted, and wrong passwords do not block signing in with the provider', async () => {
    const browser = oidc.browser()
    for (let n = 0; n < 12; n += 1) expect(await browser.finish('?state=x')).toMatchObject(ENDED)
    const key = { key: 'x'.repeat(300), name: 'ana@example.com' }
    for (let n = 0; n < 10; n += 1) expect((await browser.send('POST', '/session', key)).status).toBe(401)
    expect((await browser.send('POST', '/session', key)).status).toBe(429)
    expect((await oidc.signIn('ana', browser)).status).toBe(200)
  })

  test('whose answer the provider does not confirm is limited, separately from passwords; cancelling and signing in are not', async () => {
    const browser = oidc.browser()
    for (let n = 0; n < 12; n += 1) {
      const back = await oidc.provider.visit(await browser.begin(), 'ana', 'cancel')
      expect((await browser.finish(back.search)).code).toBe('oidc_denied')
    }
    for (let n = 0; n < 3; n += 1) expect((await oidc.signIn('ana', browser)).status).toBe(200)
    for (let n = 0; n < 10; n += 1) {
      const state = new URL(await browser.begin()).searchParams.get('state')
      expect((await browser.finish(`?state=${state}&code=x`)).code).toBe('oidc_failed')
    }
    const before = tokenRequests()
    const { back } = await beginAndVisit('ana', browser)
    const limited = await browser.finish(back.search)
    expect([limited.status, limited.code, tokenRequests()]).toEqual([429, 'too_many_attempts', before])
    const key = { key: 'x'.repeat(300), name: 'ana@example.com' }
    expect((await browser.send('POST', '/session', key)).status).toBe(401)
    expect((await oidc.signIn('ana')).status).toBe(200)
  })
})

describe('a provider that', () => {
  test.each(['status 503', 'hang'] as const)(
    'does not answer during a sign-in (%s) is reported',
    async is => {
      const { browser, back } = await beginAndVisit()
      oidc.provider.fault = { is, at: /^\/token/ }
      expect(await browser.finish(back.search)).toMatchObject({ status: 502, code: 'oidc_unreachable' })
    },
    4 * PROVIDER_WITHIN_MS,
  )

  test.each(['garbage', 'endless'] as const)('sends something that is not an answer (%s) is reported', async is => {
    const { browser, back } = await beginAndVisit()
    oidc.provider.fault = { is, at: /^\/token/ }
    expect(await browser.finish(back.search)).toMatchObject(FAILED)
  })

  test('is down at the start of the service delays neither the start nor a sign-in by password, and works when it is back', async () => {
    await using own = await OidcService.start()
    addPerson(own, 'ana')
    await own.invite('ana@example.com')
    expect(own.provider.requests).toEqual([])
    for (const is of ['status 503', 'garbage', 'endless'] as const) {
      own.provider.fault = { is, at: /^/ }
      const begun = await own.browser().send('POST', '/session/oidc', {})
      expect([begun.status, begun.code], is).toEqual([502, 'oidc_unreachable'])
      expect((await own.browser().send('POST', '/session', { key: own.service.adminKey })).status).toBe(200)
    }
    own.provider.fault = { is: 'none', at: /^/ }
    expect((await own.signIn('ana')).status).toBe(200)
    const reasons = own.service.logLines.filter(({ msg }) => msg === 'oidc.unreachable').map(({ reason }) => reason)
    const tooLong = expect.stringContaining('more than 1 MiB')
    expect(reasons).toEqual([expect.stringContaining('status 503'), expect.any(String), tooLong])
  })

  test(
    'hangs gets one request, however many people click, and delays nobody else',
    async () => {
      await using own = await OidcService.start()
      own.provider.fault = { is: 'hang', at: /^/ }
      const clicks = Array.from({ length: 80 }, () => own.browser().send('POST', '/session/oidc', {}))
      await until('the provider to hang', () => own.provider.requests.length > 0)
      let isOver = false
      void Promise.all(clicks).then(() => {
        isOver = true
      })
      expect((await own.browser().send('POST', '/session', { key: own.service.adminKey })).status).toBe(200)
      expect(isOver).toBe(false)
      const codes = new Set((await Promise.all(clicks)).map(({ code }) => code))
      expect([...codes].sort()).toEqual(['oidc_unreachable', 'service_unavailable'])
      // On a slow machine, the last clicks come after the first request has ended.
      expect(own.provider.requests.length).toBeLessThanOrEqual(3)
    },
    2 * PROVIDER_WITHIN_MS,
  )
})
