import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { type Network, startNetwork } from '../network.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'
import { openAs } from './invite.ts'

let harness: PanelHarness
let network: Network
let viewer: Page
beforeAll(async () => {
  network = await startNetwork()
  harness = await PanelHarness.start({ WHATSAPP_URL: network.url })
  viewer = await openAs(harness, 'rui@example.com', 'viewer', 'correct horse battery')
})
afterAll(async () => {
  await harness?.dispose()
  await network?.close()
})

test('a viewer is told who can link a number, in place of a code that only operators see', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Kiosk')
  const offered = () => viewer.getByRole('button', { name: /Link|code|Try again/ }).count()
  await viewer.goto(`${harness.url}/instances/${id}`)
  await viewer.getByText('An operator or owner can link the number.').waitFor()
  expect(await offered()).toBe(0)
  await harness.service.admin.connect(id)
  await until('a code', async () => (await harness.service.admin.connection(id)).qr)
  await viewer.getByText('Waiting for the phone.').waitFor()
  await viewer.getByText('An operator or owner can link the number.').waitFor()
  expect(await offered()).toBe(0)
  expect(await viewer.getByText('Asking WhatsApp for a code…').count()).toBe(0)

  const { phone } = await network.scanQr((await harness.service.admin.connection(id)).qr!)
  await harness.service.admin.untilState(id, 'connected')
  await network.misbehave({ kind: 'stream_error', account: phone, conflict: 'replaced' })
  await viewer.getByText('An operator or owner can connect it again.').waitFor()
  expect(await offered()).toBe(0)
  expect(harness.complaints).toEqual([])
})

test('a viewer who opens a page of owners by its address is refused, and sees no button of owners', async () => {
  const refused = viewer.locator('main').getByText('forbidden', { exact: true })
  for (const path of ['/people', '/alerts', '/audit']) {
    await viewer.goto(harness.url + path)
    await refused.first().waitFor()
    for (const name of [en.people.invite, en.alerts.add, en.endpoints.add, en.audit.check])
      expect(await viewer.getByRole('button', { name }).count()).toBe(0)
  }
})

test('a viewer is not sent to a webhook that they may not set, and is told why they see no signatures', async () => {
  const { id, token } = await harness.service.admin.createConnected('No webhook')
  const instance = harness.service.instance(id, token)
  const { id: messageId } = await instance.send('5511987654321', 'Hello')
  await viewer.goto(`${harness.url}/instances/${id}/events`)
  await viewer.getByText('No webhook URL is set.').waitFor()
  expect(await viewer.getByRole('link', { name: 'Set a URL' }).count()).toBe(0)
  await viewer.goto(`${harness.url}/instances/${id}/messages?open=${messageId}`)
  await viewer.getByRole('dialog').getByText('The recipient has opened it.').waitFor()
  expect(await viewer.getByRole('link', { name: /Set a webhook URL/ }).count()).toBe(0)

  await instance.setWebhook(harness.receiver.url)
  await instance.send('5511987654321', 'Hello again')
  const [event] = await until('a delivered event', async () => {
    const events = await harness.service.admin.listEvents(id, '?state=delivered')
    return events.length > 0 && events
  })
  await viewer.goto(`${harness.url}/instances/${id}/events?open=${event!.id}`)
  await viewer.locator('summary', { hasText: 'Headers' }).click()
  await viewer.getByText('Viewers do not see signatures.').waitFor()
  expect(await viewer.getByText('The secret has changed since').count()).toBe(0)
  expect(harness.complaints).toEqual([])
})
