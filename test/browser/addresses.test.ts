import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { GUIDES } from '../../panel/src/pages/guides/names.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
let instanceId: string
beforeAll(async () => {
  harness = await PanelHarness.start()
  const { id, token } = await harness.service.admin.createConnected('Bakery')
  instanceId = id
  await harness.service.instance(id, token).send('5511987654321', 'Hello')
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

test('the title of a tab names the page and the instance', async () => {
  const page = await harness.open('/sign-in')
  await page.waitForFunction(() => document.title === 'Sign in · Pombal')
  const signedIn = await harness.openSignedIn('/')
  for (const [path, title] of [
    ['/', 'Instances · Pombal'],
    ['/settings', 'Settings · Pombal'],
    [`/instances/${instanceId}`, 'Overview · Bakery · Pombal'],
    [`/instances/${instanceId}/messages`, 'Messages · Bakery · Pombal'],
    [`/instances/${instanceId}/webhook`, 'Webhook · Bakery · Pombal'],
    ['/nowhere', 'Page not found. · Pombal'],
  ]) {
    await signedIn.goto(harness.url + path)
    await signedIn.waitForFunction(wanted => document.title === wanted, title)
  }
  harness.complaints.length = 0
})

test('an unknown address shows a page with a way back to a browser, and a JSON error to a program', async () => {
  const page = await harness.openSignedIn('/')
  for (const path of ['/nowhere', '/instances/a/b/c', '/admin']) {
    const response = await page.goto(harness.url + path)
    expect([response?.status(), response?.headers()['content-type']], path).toEqual([404, 'text/html; charset=utf-8'])
    await page.getByRole('link', { name: 'Go to the instances' }).click()
    await page.getByRole('heading', { level: 1, name: 'Instances' }).waitFor()
    const answer = await fetch(harness.url + path)
    expect([answer.status, (await answer.json()).error.code], path).toEqual([404, 'not_found'])
  }
  const v1 = await page.goto(`${harness.url}/v1/nowhere`)
  expect(v1?.headers()['content-type']).toContain('application/json')
  harness.complaints.length = 0
})

test('a link to a period means the same period in every time zone', async () => {
  const inBrazil = await harness.openSignedIn(`/instances/${instanceId}/messages`, { timezoneId: 'America/Sao_Paulo' })
  await inBrazil.getByLabel('Since').fill('2026-01-05T10:30')
  await inBrazil.waitForURL(/since=/)
  expect(new URL(inBrazil.url()).searchParams.get('since')).toBe('2026-01-05T13:30:00.000Z')
  expect(await inBrazil.getByLabel('Since').inputValue()).toBe('2026-01-05T10:30')
  const inBerlin = await harness.openSignedIn('/', { timezoneId: 'Europe/Berlin' })
  await inBerlin.goto(inBrazil.url())
  await inBerlin.getByLabel('Since').waitFor()
  expect(await inBerlin.getByLabel('Since').inputValue()).toBe('2026-01-05T14:30')
})

test('each conversation of the simulated phone shows when it was last active', async () => {
  const page = await harness.openSignedIn(`/instances/${instanceId}/phone`)
  const row = page.getByRole('navigation', { name: 'Conversations' }).getByRole('link').first()
  expect(await row.locator('time').getAttribute('datetime')).toMatch(/^\d{4}-/)
})

test('the guides are read inside the panel, from the page that they explain, without leaving it', async () => {
  const page = await harness.openSignedIn(`/instances/${instanceId}/webhook`)
  await page.evaluate(() => Object.assign(window, { stillHere: true }))
  await page.getByRole('link', { name: 'Guide: receive events' }).click()
  await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  await page.waitForFunction(() => document.title === 'Webhooks · Guides · Pombal')
  await page.getByRole('link', { name: 'contract.md' }).first().click()
  await page.waitForURL(/\/guides\/contract#4-states-and-events$/)
  const heading = page.locator('[id="4-states-and-events"]')
  await page.waitForFunction(() => window.scrollY > 500)
  await heading.waitFor()
  for (const guide of GUIDES) {
    await page.getByRole('navigation', { name: 'Guides' }).locator(`a[href="/guides/${guide}"]`).click()
    await page.waitForURL(new RegExp(`/guides/${guide}$`))
    await page.locator('article h1').waitFor()
  }
  expect(await page.evaluate(() => 'stillHere' in window)).toBe(true)
  await page.reload()
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.goto(`${harness.url}/guides/nothing`)
  await page.getByText('Page not found.').waitFor()
  expect(harness.complaints).toEqual([])
})

test('the search by keyboard opens the guides, and the reference leads back', async () => {
  const page = await harness.openSignedIn('/')
  await page.getByRole('heading', { name: 'Instances' }).waitFor()
  const paper = await page.locator('body').evaluate(body => getComputedStyle(body).backgroundColor)
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: /message ID/ }).fill('guid')
  await page.getByRole('option', { name: /Guides/, selected: true }).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'The panel' }).waitFor()
  await page.getByRole('navigation', { name: 'Guides' }).getByRole('link', { name: 'API reference' }).click()
  await page.waitForFunction(colour => {
    const bar = document.querySelector('header')
    return bar !== null && getComputedStyle(bar).backgroundColor === colour
  }, paper)
  await page.getByRole('link', { name: '← Pombal' }).click()
  await page.getByRole('heading', { name: 'Instances' }).waitFor()
})
