import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { GUIDES } from '../../panel/src/pages/guides/names.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
let instanceId: string
beforeAll(async () => {
  harness = await PanelHarness.start()
  instanceId = (await harness.service.admin.createConnected('Reader')).id
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

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
