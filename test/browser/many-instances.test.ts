import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'
import { seedInstances } from './seed.ts'

const INSTANCES = 500
/** A list that draws all its rows would have hundreds. */
const MAX_DRAWN = 60

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
  const { service } = harness
  await service.kill('SIGTERM')
  await seedInstances(service.dataDir, INSTANCES, 'sandbox', index => `São Paulo ${String(index).padStart(3, '0')}`)
  await service.start()
  await service.admin.createConnected('The only one that is connected')
})
afterAll(() => harness.dispose())

/** The names of the drawn rows, from top to bottom. */
async function drawn(page: Page): Promise<string[]> {
  const names = await page.locator('[role="row"]').evaluateAll(rows => {
    const index = (row: Element) => Number(row.getAttribute('aria-rowindex'))
    return rows
      .filter(row => index(row) > 0)
      .toSorted((one, other) => index(one) - index(other))
      .map(row => row.querySelector('a')?.textContent ?? '')
  })
  expect(names.length).toBeLessThan(MAX_DRAWN)
  return names
}

const firstIs = (page: Page, name: string) => until(`${name} on top`, async () => (await drawn(page))[0] === name)

test('500 instances are scrolled, filtered, sorted and searched, and only the rows in view are drawn', async () => {
  const page = await harness.openSignedIn('/')
  await firstIs(page, 'The only one that is connected')

  await page.goto(`${harness.url}/?sort=name`)
  await firstIs(page, 'São Paulo 000')
  await until('the end of the list', async () => {
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight))
    await drawn(page)
    return page.getByText('End of the list.').isVisible()
  })
  expect(await page.getByRole('table').getAttribute('aria-rowcount')).toBe(String(INSTANCES + 2))
  await until('the last row', async () => (await drawn(page)).at(-1) === 'The only one that is connected')
  // The names of the columns stay in view, below the bar.
  const head = await page.getByRole('columnheader', { name: 'WhatsApp' }).boundingBox()
  const bar = await page.getByRole('banner').boundingBox()
  expect(Math.abs(head!.y - (bar!.y + bar!.height))).toBeLessThan(20)

  await page.evaluate(() => window.scrollTo(0, 0))
  await page.getByRole('searchbox').fill('sao paulo 47')
  await until('ten rows', async () => (await drawn(page)).length === 10)
  await firstIs(page, 'São Paulo 470')
  await page.getByRole('searchbox').fill('')
  await page.getByLabel('WhatsApp').first().click()
  await page.getByRole('option', { name: 'Connected', exact: true }).click()
  await until('one row', async () => (await drawn(page)).join() === 'The only one that is connected')

  await page.goto(harness.url)
  await page.getByRole('table').waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: /São Paulo/ }).waitFor()
  expect(harness.complaints).toEqual([])
})
