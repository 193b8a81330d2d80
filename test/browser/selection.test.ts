import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '3600000', WEBHOOK_TIMEOUT_MS: '120000' })
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

test('selected messages that failed are sent again, each once, and only those', async () => {
  const { id, token } = await harness.service.admin.createConnected('Resend')
  const instance = harness.service.instance(id, token)
  for (const text of ['first', 'second', 'third']) await instance.send('15005550001', text)
  await instance.send('5511987654321', 'arrives')
  await until(
    'three failures',
    async () => (await harness.service.admin.listMessages(id, '?state=failed')).length === 3,
  )
  const page = await harness.openSignedIn(`/instances/${id}/messages`)
  const rowOf = (text: string) => page.getByRole('row').filter({ hasText: text })
  for (const text of ['first', 'third', 'arrives']) await rowOf(text).getByRole('checkbox').check()
  await page.getByText('3 rows are selected').waitFor()
  await page.getByRole('button', { name: 'Send 2 again' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('third').waitFor()
  expect(await dialog.getByText('arrives').count()).toBe(0)
  expect(await harness.service.admin.listMessages(id)).toHaveLength(4)

  // The service accepts the first call, and the answer is lost.
  let lost = 0
  await page.route(/\/messages$/, async route => {
    if (route.request().method() !== 'POST' || lost > 0) return route.continue()
    lost += 1
    await route.fetch()
    await route.abort('connectionreset')
  })
  await dialog.getByRole('button', { name: 'Send 2 again' }).click()
  await page.getByText('1 requested, 1 refused.').waitFor()
  await dialog.getByRole('button', { name: 'Send 1 again' }).click()
  await dialog.waitFor({ state: 'detached' })
  const texts = async () => (await harness.service.admin.listMessages(id)).map(({ text }) => text).toSorted()
  expect(await texts()).toEqual(['arrives', 'first', 'first', 'second', 'third', 'third'])
  await page.getByText('1 row is selected').waitFor()
  await page.getByRole('button', { name: 'Clear the selection' }).click()
  await page.getByText('1 row is selected').waitFor({ state: 'detached' })
  // The browser reports the lost answer.
  harness.complaints.length = 0
})

test('by keyboard, each selected event is retried now or posted again, depending on its state', async () => {
  const { id, token } = await harness.service.admin.createConnected('Retry')
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  harness.receiver.answerWith(({ headers }) => ({
    kind: 'status',
    status: headers['x-service-event'] === 'message.read' ? 500 : 200,
  }))
  await instance.send('5511987654321', 'Hello')
  const [waiting] = await until('an event that waits', async () => {
    const events = await harness.service.admin.listEvents(id, '?state=retrying')
    return events.length > 0 && events
  })
  const delivered = await harness.service.admin.listEvents(id, '?state=delivered')
  expect(delivered).toHaveLength(2)
  harness.receiver.answerWith({ kind: 'status', status: 200 })
  const before = harness.receiver.requests.length
  const page = await harness.openSignedIn(`/instances/${id}/events?kind=message.read`)
  await page.getByRole('checkbox', { name: `Select ${waiting!.id}` }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('x')
  await page.getByRole('button', { name: 'Redeliver or retry 1' }).press('Enter')
  await page.getByRole('dialog').locator('button:focus', { hasText: 'Redeliver or retry 1' }).waitFor()
  await page.keyboard.press('Enter')
  await until('a retry', async () => (await harness.service.admin.listEvents(id, '?state=delivered')).length === 3)

  await page.goto(`${harness.url}/instances/${id}/events?state=delivered`)
  await page.getByRole('checkbox', { name: 'Select all loaded rows' }).check()
  await page.getByRole('button', { name: 'Redeliver or retry 3' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Redeliver or retry 3' }).click()
  // It stays open if a row was refused.
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await harness.receiver.waitFor(before + 4)
  const posted = harness.receiver.requests.slice(before).map(({ headers }) => headers['webhook-id'])
  expect(posted.toSorted()).toEqual([waiting!.id, waiting!.id, ...delivered.map(event => event.id)].toSorted())
  expect(harness.complaints).toEqual([])
})
