import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../until.ts'
import { ADMIN_KEY, Stage, signIn } from './stage.ts'

const PASSWORD = 'correct horse battery'

let stage: Stage
beforeAll(async () => {
  stage = await Stage.start()
})
afterAll(() => stage.dispose())

test('whoever is not signed in is led to the sign-in, and back to where they wanted to go', async () => {
  const page = await stage.open('/settings')
  await page.waitForURL(/\/sign-in\?from=/)
  expect(await page.getByText('Your session has ended').count()).toBe(0)
  await signIn(page)
  expect(new URL(page.url()).pathname).toBe('/settings')
})

test('a password can be set only when signed in, and then opens the panel; the key still does', async () => {
  const refused = await fetch(`${stage.url}/admin/v1/password`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ password: PASSWORD }),
  })
  expect(refused.status).toBe(401)

  const page = await stage.openSignedIn('/settings')
  await page.getByLabel('New password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByText('A password is set.').waitFor()
  await signIn(await stage.open('/sign-in'), PASSWORD)
  await signIn(await stage.open('/sign-in'), ADMIN_KEY)
})

test('a session that is ended elsewhere goes to the sign-in by itself', async () => {
  const page = await stage.openSignedIn('/')
  const elsewhere = await stage.openSignedIn('/settings')
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
  const page = await stage.openSignedIn('/')
  const [cookie] = await page.context().cookies(`${stage.url}/admin/v1/session`)
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/admin/v1' })
  const headers = { cookie: `${cookie!.name}=${cookie!.value}` }
  const session = () => fetch(`${stage.url}/admin/v1/session`, { headers })
  expect((await session()).status).toBe(200)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/\/sign-in/)
  expect((await session()).status).toBe(401)
})

test('a session counts only for requests from this site', async () => {
  const page = await stage.openSignedIn('/')
  const [cookie] = await page.context().cookies(`${stage.url}/admin/v1/session`)
  const send = (headers: Record<string, string>) =>
    fetch(`${stage.url}/admin/v1/instances`, {
      method: 'POST',
      headers: { cookie: `${cookie!.name}=${cookie!.value}`, 'content-type': 'application/json', ...headers },
      body: '{}',
    })
  expect((await send({ 'sec-fetch-site': 'same-site' })).status).toBe(403)
  expect((await send({ 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await send({ origin: 'http://127.0.0.1:1' })).status).toBe(403)
  expect((await send({})).status).toBe(403)
  expect((await send({ origin: stage.url })).status).toBe(201)
})

test('the page loads nothing from elsewhere and holds no script of its own', async () => {
  const page = await stage.open('/')
  const hosts = new Set<string>()
  page.on('request', request => hosts.add(new URL(request.url()).host))
  await signIn(page)
  await page.getByText('Live', { exact: true }).waitFor()
  expect([...hosts]).toEqual([new URL(stage.url).host])
  const policy = (await fetch(stage.url)).headers.get('content-security-policy')
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("script-src 'self';")
  expect(policy).not.toContain('unsafe')
  expect(stage.complaints).toEqual([])
})

test('addresses that are not pages keep their meaning', async () => {
  const answer = async (path: string) => {
    const response = await fetch(stage.url + path, { headers: { accept: 'text/html' } })
    return [response.status, response.headers.get('content-type')?.split(';')[0]]
  }
  expect(await answer('/instances/inst_x/messages')).toEqual([200, 'text/html'])
  expect(await answer('/v1/nothing')).toEqual([401, 'application/json'])
  expect(await answer('/admin/v1/nothing')).toEqual([401, 'application/json'])
  expect(await answer('/nothing')).toEqual([404, 'application/json'])
  expect(await answer('/assets/nothing.js')).toEqual([404, 'application/json'])
  expect(await answer('/openapi.json')).toEqual([200, 'application/json'])
})

/** The last one: from then on this address may guess no more. */
test('guessing is throttled, also with the right password; the admin key still opens', async () => {
  const page = await stage.open('/sign-in')
  const field = page.locator('input[type="password"]')
  for (let guess = 1; guess <= 11; guess += 1) {
    await field.fill(`wrong password ${guess}`)
    const answered = page.waitForResponse(/\/session$/)
    await page.keyboard.press('Enter')
    await answered
  }
  await page.getByText('Too many failed attempts').waitFor()
  await field.fill(PASSWORD)
  const answered = page.waitForResponse(/\/session$/)
  await page.keyboard.press('Enter')
  expect((await answered).status()).toBe(429)
  await signIn(page, ADMIN_KEY)
})
