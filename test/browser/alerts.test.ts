import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { Receiver } from '../receiver.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'
import { seedSolvedAlerts } from './seed.ts'

let harness: PanelHarness
/** A person's phone. */
let phone: Receiver
beforeAll(async () => {
  // One failed attempt gives up an event.
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '0' })
  phone = await new Receiver().listen()
})
afterAll(async () => {
  await harness.dispose()
  await phone.close()
})
afterEach(() => harness.closePages())

test('an alert about a broken webhook is sent to the target and shown on the page until the webhook works again', async () => {
  const page = await harness.openSignedIn('/alerts')
  await page.getByText('Nobody gets alerts.').waitFor()
  await page.getByText('There are no problems.').waitFor()
  await page.getByRole('button', { name: 'Add a target' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Night shift')
  await page.getByLabel('Topic URL').fill(`${new URL(phone.url).origin}/topic`)
  await page.getByRole('dialog').getByRole('button', { name: 'Add a target' }).click()
  await page.getByRole('button', { name: 'Send a test to Night shift' }).click()
  await page.getByText('The test message arrived.').waitFor()
  expect(phone.requests).toHaveLength(1)

  harness.receiver.answerWith({ kind: 'status', status: 500 })
  const { id, token } = await harness.service.admin.createConnected('Shop')
  await harness.service.instance(id, token).setWebhook(harness.receiver.url)
  await harness.service.admin.writeAsContact(id, { from: '5511987654321', text: 'Hi' })
  await page.getByText('Events were not delivered').first().waitFor()
  await until('the alert to arrive', () => phone.requests.length > 1)
  const said = () => phone.requests.map(({ body }) => body.toString()).join('\n')
  await until('the alert about the events', () => said().includes('an instance has undelivered events'))
  expect(said()).toContain('Shop')
  expect(said()).toContain("redeliver these events on the instance's Events page in the panel")

  harness.receiver.answerWith({ kind: 'status', status: 200 })
  const [event] = await harness.service.admin.listEvents(id, '?state=exhausted')
  const redelivered = await fetch(`${harness.url}/admin/v1/instances/${id}/events/${event!.id}/redeliver`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${harness.service.adminKey}` },
  })
  expect(redelivered.status).toBe(202)
  await page.getByText('There are no problems.').waitFor()
  await until('the end to arrive', () => said().includes('solved after'))
  expect(harness.complaints).toEqual([])
})

test('the delay of a rule is changed, and a target that fails says why', async () => {
  phone.answerWith({ kind: 'status', status: 404, body: 'no such topic' })
  const page = await harness.openSignedIn('/alerts')
  await page.getByRole('combobox', { name: 'A number is down' }).click()
  await page.getByRole('option', { name: 'after 30 min' }).click()
  await page.getByRole('button', { name: 'Send a test to Night shift' }).click()
  await page.getByText('Answered 404: no such topic').waitFor()
  await page.reload()
  expect(await page.getByRole('combobox', { name: 'A number is down' }).inputValue()).toBe('after 30 min')
  await page.getByRole('button', { name: 'Remove Night shift' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText('Nobody gets alerts.').waitFor()
})

test('a problem that lasts is shown however many were solved since, and the solved ones page by page', async () => {
  harness.receiver.answerWith({ kind: 'status', status: 500 })
  const { service } = harness
  const { id, token } = await service.admin.createConnected('Long broken')
  await service.instance(id, token).setWebhook(harness.receiver.url)
  await service.admin.writeAsContact(id, { from: '5511987654321', text: 'Hi' })
  const page = await harness.openSignedIn('/alerts')
  const lasting = page
    .getByRole('listitem')
    .filter({ hasText: 'Long broken' })
    .getByText(/^since/)
  await lasting.first().waitFor()
  await page.goto('about:blank')

  await service.kill('SIGTERM')
  await seedSolvedAlerts(service.dataDir, 210)
  await service.start()
  await page.goto(`${harness.url}/alerts`)
  await lasting.first().waitFor()
  expect(await page.getByText('There are no problems.').count()).toBe(0)
  const solved = page.getByRole('listitem').filter({ hasText: /Node solved-\d+/ })
  for (const count of [50, 100, 150, 200, 210]) {
    await until(`${count} solved ones`, async () => (await solved.count()) >= count)
    if (count < 210) await page.getByRole('button', { name: 'Show older ones' }).click()
  }
})
