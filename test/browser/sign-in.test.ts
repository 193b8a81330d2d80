import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { until } from '../until.ts'
import { MAX_FIRST_LOAD_KB, measureFirstLoad } from './first-load.ts'
import { ADMIN_KEY, PanelHarness, signIn } from './harness.ts'

const PASSWORD = 'correct horse battery'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

test('visitors who are not signed in get the sign-in page, and then the page that they asked for', async () => {
  const page = await harness.open('/settings')
  await page.waitForURL(/\/sign-in\?from=/)
  expect(await page.getByText('Your session has ended').count()).toBe(0)
  await signIn(page)
  expect(new URL(page.url()).pathname).toBe('/settings')
})

test('a password can be set only when signed in; then it opens the panel, and so does the key', async () => {
  const refused = await fetch(`${harness.url}/admin/v1/password`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ password: PASSWORD }),
  })
  expect(refused.status).toBe(401)

  const page = await harness.openSignedIn('/settings')
  await page.getByLabel('New password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByText('A password is set.').waitFor()
  await signIn(await harness.open('/sign-in'), PASSWORD)
  await signIn(await harness.open('/sign-in'), ADMIN_KEY)
})

test('a page whose session is ended elsewhere shows the sign-in page', async () => {
  const page = await harness.openSignedIn('/')
  const elsewhere = await harness.openSignedIn('/settings')
  await elsewhere.getByText('this one').waitFor()
  const others = elsewhere.getByRole('button', { name: /^End the session/ })
  for (let left = await others.count(); left > 0; left -= 1) {
    await others.first().click()
    await until('one session less', async () => (await others.count()) === left - 1)
  }
  await page.waitForURL(/\/sign-in/)
  await page.getByText('Your session has ended').waitFor()
})

test('signing out ends the session on the service too', async () => {
  const page = await harness.openSignedIn('/')
  const [cookie] = await page.context().cookies(`${harness.url}/admin/v1/session`)
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/admin/v1' })
  const headers = { cookie: `${cookie!.name}=${cookie!.value}` }
  const session = () => fetch(`${harness.url}/admin/v1/session`, { headers })
  expect((await session()).status).toBe(200)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/\/sign-in/)
  expect((await session()).status).toBe(401)
})

test('after a sign-out that failed, the page says that the person is still signed in, and tries again', async () => {
  const page = await harness.openSignedIn('/settings')
  const [cookie] = await page.context().cookies(`${harness.url}/admin/v1/session`)
  const headers = { cookie: `${cookie!.name}=${cookie!.value}` }
  const status = async () => (await fetch(`${harness.url}/admin/v1/session`, { headers })).status
  await page.route('**/admin/v1/session', route =>
    route.request().method() === 'DELETE' ? route.fulfill({ status: 503, json: {} }) : route.continue(),
  )
  await page.getByRole('button', { name: 'Sign out' }).click()
  const dialog = page.getByRole('dialog', { name: 'You are still signed in' })
  await dialog.waitFor()
  expect([new URL(page.url()).pathname, await status()]).toEqual(['/settings', 200])
  await page.unrouteAll()
  await dialog.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/\/sign-in/)
  expect(await status()).toBe(401)
  // The browser reports the failed call.
  harness.complaints.length = 0
})

test('a sign-out whose session has ended already leads to the sign-in page', async () => {
  // A page that reads nothing by itself: any refused read would lead to the sign-in page.
  const page = await harness.openSignedIn('/settings')
  await page.getByText('this one').waitFor()
  await page.context().clearCookies()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/\/sign-in/)
})

test('a session counts only for requests from this site', async () => {
  const page = await harness.openSignedIn('/')
  const [cookie] = await page.context().cookies(`${harness.url}/admin/v1/session`)
  const send = (headers: Record<string, string>) =>
    fetch(`${harness.url}/admin/v1/instances`, {
      method: 'POST',
      headers: { cookie: `${cookie!.name}=${cookie!.value}`, 'content-type': 'application/json', ...headers },
      body: '{}',
    })
  expect((await send({ 'sec-fetch-site': 'same-site' })).status).toBe(403)
  expect((await send({ 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await send({ origin: 'http://127.0.0.1:1' })).status).toBe(403)
  expect((await send({})).status).toBe(403)
  expect((await send({ origin: harness.url })).status).toBe(201)
})

test('a first visit loads at most 250 KB, compressed, until it shows the instances', async () => {
  await harness.service.admin.createInstance('whatsapp', 'First visit')
  const { first, allScript } = await measureFirstLoad(await harness.open('/sign-in'))
  expect(first / 1024).toBeLessThanOrEqual(MAX_FIRST_LOAD_KB)
  // The scripts of the other pages were read ahead, and are not counted.
  expect(allScript).toBeGreaterThan(first / 2)
  expect(first / 1024).toBeGreaterThan(100)
})

test('the page loads nothing from other origins and contains no inline script', async () => {
  const page = await harness.open('/')
  const hosts = new Set<string>()
  page.on('request', request => hosts.add(new URL(request.url()).host))
  await signIn(page)
  await page.getByText('Live', { exact: true }).waitFor()
  expect([...hosts]).toEqual([new URL(harness.url).host])
  const policy = (await fetch(harness.url)).headers.get('content-security-policy')
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("script-src 'self';")
  expect(policy).not.toContain('unsafe')
  expect(harness.complaints).toEqual([])
})

test('URLs that are not pages of the panel keep their meaning', async () => {
  const answer = async (path: string) => {
    const response = await fetch(harness.url + path, { headers: { accept: 'text/html' } })
    return [response.status, response.headers.get('content-type')?.split(';')[0]]
  }
  expect(await answer('/instances/inst_x/messages')).toEqual([200, 'text/html'])
  expect(await answer('/v1/nothing')).toEqual([401, 'application/json'])
  expect(await answer('/admin/v1/nothing')).toEqual([401, 'application/json'])
  expect(await answer('/nothing')).toEqual([404, 'text/html'])
  expect(await answer('/assets/nothing.js')).toEqual([404, 'application/json'])
  expect(await answer('/openapi.json')).toEqual([200, 'application/json'])
})

/** The last test, because afterwards the service refuses passwords from this address. */
test('after ten wrong passwords even the right one is refused for a while; the admin key still opens the panel', async () => {
  const page = await harness.open('/sign-in')
  await page.locator('input[type="password"]').fill(PASSWORD)
  // The guesses are sent together, and the right password is already filled in, because guesses count for one minute.
  const guesses = await page.evaluate(() => {
    const headers = { 'content-type': 'application/json' }
    const guess = (n: number) => ({ method: 'POST', headers, body: JSON.stringify({ key: `wrong password ${n}` }) })
    const statuses = Array.from({ length: 10 }, async (_, n) => (await fetch('/admin/v1/session', guess(n))).status)
    return Promise.all(statuses)
  })
  expect(guesses).toEqual(Array.from({ length: 10 }, () => 401))
  const answered = page.waitForResponse(/\/session$/)
  await page.keyboard.press('Enter')
  expect((await answered).status()).toBe(429)
  await page.getByText('Too many failed attempts').waitFor()
  // Until the page has read the answer, Enter does nothing.
  await page.locator('button[type="submit"]:enabled').waitFor()
  await signIn(page, ADMIN_KEY)
})
