import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { noteSecret } from '../logs/log-capture.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const AHEAD_MS = 3 * 3_600_000

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
})
afterAll(async () => {
  await harness.dispose()
  expect(harness.complaints).toEqual([])
})
afterEach(() => harness.closePages())

/** Opens a page in a browser whose clock is fast. */
async function openAhead(path: string): Promise<Page> {
  const page = await harness.openSignedIn()
  await page.clock.install({ time: Date.now() + AHEAD_MS })
  await page.goto(harness.url + path)
  return page
}

test('in a browser whose clock is fast, a link that works can be revoked', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Shop')
  const response = await fetch(`${harness.url}/admin/v1/instances/${id}/links`, {
    method: 'POST',
    headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ expiresInMinutes: 60, title: 'Ana' }),
  })
  const { data } = (await response.json()) as { data: { url: string } }
  noteSecret(data.url.split('#')[1])
  const page = await openAhead(`/instances/${id}`)
  const links = page.getByRole('list', { name: en.links.list })
  await links.getByText('Ana').waitFor()
  await links.getByText(en.links.ends).waitFor()
  await links.getByRole('button', { name: en.links.revokeLabel('Ana') }).click()
  await page.getByRole('dialog').getByRole('button', { name: en.links.revoke, exact: true }).click()
  await page.getByText(en.links.revoked).waitFor()
})

test('in a browser whose clock is fast, the events of the last hour are redelivered', async () => {
  const { id, token } = await harness.service.admin.createConnected('Refused')
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  harness.receiver.answerWith({ kind: 'status', status: 500 })
  await instance.send('5511987654321', 'Hello')
  await until('three events given up', async () => {
    return (await harness.service.admin.listEvents(id, '?state=exhausted')).length === 3
  })
  harness.receiver.answerWith({ kind: 'status', status: 200 })
  const page = await openAhead(`/instances/${id}/events`)
  await page.getByRole('button', { name: 'Redeliver…' }).click()
  await page.getByRole('dialog').getByLabel(en.redeliver.since).first().click()
  await page.getByRole('option', { name: en.redeliver.hours['1'] }).click()
  await page.getByRole('button', { name: 'Redeliver 3 events' }).click()
  await page.getByText('All done.').waitFor()
})

test('in a tab that is left open overnight, a message of the previous day is shown with its date', async () => {
  const { id, token } = await harness.service.admin.createConnected('Over night')
  await harness.service.instance(id, token).send('5511987654321', 'Hello')
  const page = await harness.openSignedIn()
  await page.clock.install()
  await page.goto(`${harness.url}/instances/${id}/messages`)
  const time = page.getByRole('table', { name: 'Messages' }).locator('time').first()
  expect(await time.innerText()).toMatch(/^\d\d:/)
  // An answer would report today's time of the service.
  await page.route(/\/admin\/v1\//, route => route.abort('connectionrefused'))
  await page.clock.fastForward('25:00:00')
  await until('the date', async () => /^[A-Z][a-z]+ \d/.test(await time.innerText()))
  await page.close()
  harness.complaints.length = 0
})
