import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { eventOf } from '../receiver.ts'
import { until } from '../until.ts'
import { problemsOf } from './accessibility.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '3600000' })
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

test('an endpoint for all instances is added, tested, paused, resumed, changed and removed, and receives their events', async () => {
  const { receiver, service } = harness
  const page = await harness.openSignedIn('/alerts')
  const card = page.getByRole('listitem').filter({ hasText: receiver.url })
  const dialog = page.getByRole('dialog')
  await page.getByText('Add one if one of your programs watches all numbers.').waitFor()
  await page.getByRole('button', { name: 'Add an endpoint' }).click()
  await dialog.getByLabel('URL').fill(receiver.url)
  await dialog.getByLabel('Note (optional)').fill('Night shift')
  await dialog.getByRole('button', { name: 'Add an endpoint' }).click()
  await card.getByText('whsec_').or(card.getByLabel('Signing secret')).first().waitFor()
  await card.getByRole('button', { name: 'I have copied it' }).click()

  await page.getByRole('button', { name: `Send a test event to ${receiver.url}` }).click()
  await until('the test event', () => receiver.requests.length === 1)
  expect(eventOf(receiver.requests[0]!)).toMatchObject({ event: 'webhook.test', instanceId: null })

  // The answer to the test event is not shown for another URL.
  await card.getByText('The test event was received.').waitFor()
  const changeTo = async (url: string) => {
    await page.getByRole('button', { name: /^Edit / }).click()
    await dialog.getByLabel('URL').fill(url)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: `Edit ${url}`, exact: true }).waitFor()
    await dialog.waitFor({ state: 'detached' })
  }
  await changeTo(`${receiver.url}/other`)
  expect(await page.getByText('The test event was received.').count()).toBe(0)
  await changeTo(receiver.url)

  const kindsOf = (id: string) =>
    receiver.requests.map(eventOf).flatMap(event => (event.instanceId === id ? [event.event] : []))
  const first = await service.admin.createConnected('Shop')
  await until('the connection of the first instance', () => kindsOf(first.id).includes('instance.connected'))

  await page.getByRole('button', { name: `Pause ${receiver.url}` }).click()
  await card.getByText('Paused', { exact: true }).waitFor()
  const second = await service.admin.createConnected('Bakery')
  await page.getByRole('button', { name: `Resume ${receiver.url}` }).click()
  await until('the collected events', () => kindsOf(second.id).includes('instance.connected'))

  await page.getByRole('button', { name: `Edit ${receiver.url}` }).click()
  await dialog.getByLabel('Only these').check()
  await dialog.getByLabel('instance.connected').uncheck()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await card.getByText('instance.stopped').waitFor()

  // The endpoint shows what was saved, and the only copy of a new secret, even if the list is not answered.
  const replaced = page.waitForResponse(/\/secret$/)
  const list = Promise.withResolvers<void>()
  await page.route(/\/endpoints$/, async route => {
    await list.promise
    await route.continue()
  })
  await page.getByRole('button', { name: `Edit ${receiver.url}` }).click()
  await dialog.getByLabel('Note (optional)').fill('Day shift')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: `Edit ${receiver.url}` }).click()
  expect(await dialog.getByLabel('Note (optional)').inputValue()).toBe('Day shift')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: `New secret for ${receiver.url}` }).click()
  await dialog.getByRole('button', { name: 'New secret' }).click()
  const { data } = (await (await replaced).json()) as { data: { secret: string } }
  await dialog.waitFor({ state: 'detached' })
  await card.getByText(data.secret, { exact: true }).waitFor()
  list.resolve()
  await page.unrouteAll({ behavior: 'wait' })

  await page.getByRole('button', { name: `Remove ${receiver.url}` }).click()
  await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText('Add one if one of your programs watches all numbers.').waitFor()
  expect(harness.complaints).toEqual([])
})

test('the first page names an endpoint for all instances that fails, until it recovers', async () => {
  const { receiver, service, url } = harness
  receiver.answerWith({ kind: 'status', status: 500 })
  const page = await harness.openSignedIn('/alerts')
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: 'Add an endpoint' }).click()
  await dialog.getByLabel('URL').fill(receiver.url)
  await dialog.getByLabel('Note (optional)').fill('Night shift')
  await dialog.getByRole('button', { name: 'Add an endpoint' }).click()
  const card = page.getByRole('listitem').filter({ hasText: receiver.url })
  await card.getByLabel('Signing secret').first().waitFor()
  expect(await problemsOf(page)).toEqual([])

  await service.admin.createConnected('Kiosk')
  await page.goto(url)
  const trouble = page
    .getByRole('region', { name: /needs? attention/ })
    .getByRole('listitem')
    .filter({ hasText: 'Night shift' })
  await trouble.getByText('Webhook: Retrying').waitFor()
  expect(await problemsOf(page)).toEqual([])

  receiver.answerWith({ kind: 'status', status: 200 })
  await trouble.getByRole('link', { name: 'Open the endpoints' }).click()
  await card.getByText('Retrying', { exact: true }).waitFor()
  expect(await problemsOf(page)).toEqual([])
  await page.getByRole('button', { name: `Retry all events for ${receiver.url}` }).click()
  await card.getByText('Waiting: 0.').waitFor()
  await page.goto(url)
  await page.getByRole('row').filter({ hasText: 'Kiosk' }).waitFor()
  await trouble.waitFor({ state: 'detached' })
  expect(harness.complaints).toEqual([])
})
