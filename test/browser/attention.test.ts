import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const RECIPIENT = '5511987654321'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

test('when a receiver fails, the first page names the instance and the remedy, until it is fixed', async () => {
  const { id, token } = await harness.service.admin.createConnected('Bakery')
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  const page = await harness.openSignedIn('/')
  await page.getByRole('row').filter({ hasText: id }).getByText('Connected', { exact: true }).waitFor()
  const attention = page.getByRole('region', { name: /needs? attention/ })
  expect(await attention.count()).toBe(0)

  harness.receiver.answerWith({ kind: 'status', status: 500 })
  await instance.send(RECIPIENT, 'Hello')
  await attention.getByText('3 events of the last 7 days were given up').waitFor()
  await attention.getByText('Webhook: Failing').waitFor()
  await attention.getByText('Fix the receiver').waitFor()
  const above = await attention.boundingBox()
  const list = await page.getByRole('table').boundingBox()
  expect(above!.y).toBeLessThan(list!.y)

  harness.receiver.answerWith({ kind: 'status', status: 200 })
  await attention.getByRole('link', { name: 'Show why, and redeliver' }).click()
  await page.getByRole('button', { name: 'Redeliver…' }).click()
  await page.getByRole('button', { name: 'Redeliver 3 events' }).click()
  await page.getByText('All done.').waitFor()
  await page.goto(harness.url)
  await page.getByRole('row').filter({ hasText: id }).getByText('last delivered').waitFor()
  await attention.waitFor({ state: 'detached' })
  expect(harness.complaints).toEqual([])
})

test('if the problems or the connection cannot be read, the panel says so and offers to try again', async () => {
  const { id } = await harness.service.admin.createConnected('Unknown')
  const page = await harness.openSignedIn('/settings')
  const unread = /\/admin\/v1\/(attention|activity|alerts\/rules|instances\/[^/]+\/connection)(\?|$)/
  const body = { error: { code: 'internal_error', message: 'Internal error' } }
  await page.route(unread, route => route.fulfill({ status: 500, json: body }))
  const problem = page.getByRole('alert').filter({ hasText: en.problems.internal_error })
  await page.goto(`${harness.url}/alerts`)
  await problem.waitFor()
  // The connection, and the deliveries.
  await page.goto(`${harness.url}/instances/${id}`)
  await problem.nth(1).waitFor()

  await page.goto(harness.url)
  await page.getByRole('row').filter({ hasText: id }).waitFor()
  await problem.waitFor()
  await page.unrouteAll({ behavior: 'wait' })
  await problem.getByRole('button', { name: en.common.tryAgain }).click()
  await problem.waitFor({ state: 'detached' })
  expect(harness.complaints.filter(line => !/status of 500/.test(line))).toEqual([])
  harness.complaints.length = 0
})

test('problems that can no longer be read stay on the page, with the error', async () => {
  const { id, token } = await harness.service.admin.createConnected('Stale')
  await harness.service.instance(id, token).setWebhook(harness.receiver.url)
  harness.receiver.answerWith({ kind: 'status', status: 500 })
  const fail = () => harness.service.instance(id, token).send(RECIPIENT, 'Hello')
  await fail()
  const broken = { error: { code: 'internal_error', message: 'Internal error' } }
  const problem = (page: Page) => page.getByRole('alert').filter({ hasText: en.problems.internal_error })
  for (const [path, known] of [
    ['/', (page: Page) => page.getByRole('region', { name: /needs? attention/ })],
    [`/instances/${id}`, (page: Page) => page.getByRole('alert').filter({ hasText: /being retried|given up/ })],
  ] as const) {
    const page = await harness.openSignedIn(path)
    await known(page).first().waitFor()
    await page.route(/\/admin\/v1\/(attention|activity)(\?|$)/, route => route.fulfill({ status: 500, json: broken }))
    await fail()
    await problem(page).first().waitFor()
    expect(await known(page).first().isVisible()).toBe(true)
    await page.unrouteAll({ behavior: 'wait' })
  }
  harness.receiver.answerWith({ kind: 'status', status: 200 })
  expect(harness.complaints.filter(line => !/status of 500/.test(line))).toEqual([])
  harness.complaints.length = 0
})

test('instances are found as people write their names and numbers, and listed by state and name', async () => {
  const { admin } = harness.service
  const { id } = await admin.createConnected('Padaria São João')
  await admin.createInstance('whatsapp', 'Álvaro')
  const found = await until('a number', async () => {
    const { data } = (await (
      await fetch(`${harness.url}/admin/v1/instances?search=${id}`, {
        headers: { authorization: `Bearer ${harness.service.adminKey}` },
      })
    ).json()) as { data: { phone: string }[] }
    return data[0]?.phone
  })
  const page = await harness.openSignedIn('/')
  const search = page.getByRole('searchbox')
  for (const text of ['sao joao', `+${found.slice(0, 2)} ${found.slice(2, 4)} ${found.slice(4)}`]) {
    await search.fill(text)
    await page.waitForURL(url => url.searchParams.get('search') === text)
    await page.getByText('Padaria São João').waitFor()
    await until('one row', async () => (await page.getByRole('row').count()) === 2)
  }
  await search.fill('')
  await page.getByLabel('WhatsApp').first().click()
  await page.getByRole('option', { name: 'Not linked' }).click()
  await page.getByText('Padaria São João').waitFor({ state: 'detached' })
  await page.getByText('Álvaro').waitFor()
  await page.goto(`${harness.url}/?sort=name`)
  await page.getByRole('row').nth(1).getByText('Álvaro').waitFor()
})
