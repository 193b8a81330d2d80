import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
})
afterAll(() => harness.dispose())

/** The entries below the charts of an overview, such as `Sent 1`. */
async function entriesOn(page: Page): Promise<string[]> {
  const texts = await page
    .locator('section', { hasText: 'Messages and deliveries' })
    .getByRole('listitem')
    .allInnerTexts()
  return texts.map(text => text.replaceAll(/\s+/g, ' ').trim())
}

test('the charts of messages, failures and deliveries do not contradict each other', async () => {
  const { admin } = harness.service
  const { id, token } = await admin.createConnected('Charts')
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByText('Nothing was delivered in this period.').waitFor()

  harness.receiver.answerWith({ kind: 'status', status: 500 })
  await instance.send('5511987654321', 'Hello')
  await until('three events given up', async () => (await admin.listEvents(id, '?state=exhausted')).length === 3)
  await until('them in the chart', async () => (await entriesOn(page)).includes('Given up 3'))
  expect(await entriesOn(page)).toContain('Sent 1')
  await page.getByText('Nothing was delivered in this period.').waitFor()

  harness.receiver.answerWith({ kind: 'status', status: 200 })
  for (const event of await admin.listEvents(id, '?state=exhausted')) {
    const answer = await fetch(`${harness.url}/admin/v1/instances/${id}/events/${event.id}/redeliver`, {
      method: 'POST',
      headers: { authorization: `Bearer ${harness.service.adminKey}` },
    })
    expect(answer.status).toBe(202)
  }
  await until('the redeliveries in the chart', async () => (await entriesOn(page)).includes('By redelivery 3'))
  await page.getByText('All deliveries of this period are redeliveries.').waitFor()
  expect(await page.getByText('Nothing was delivered').count()).toBe(0)
  expect((await entriesOn(page)).filter(entry => entry.startsWith('Given up'))).toEqual([])

  await instance.send('15005550001', 'Hello')
  await until('the first attempt in the chart', async () => (await entriesOn(page)).includes('At the first attempt 1'))
  const entries = await entriesOn(page)
  expect(entries).toEqual(expect.arrayContaining(['Sent 1', 'Failed 1', 'By redelivery 3']))
  // Only one delivery was timed, so both figures are its time.
  const timeOf = (name: string) => entries.find(entry => entry.startsWith(name))?.slice(name.length)
  const half = timeOf('Half within ')
  expect(half).toMatch(/^[\d.,]+ m?s$/)
  expect(timeOf('95% within ')).toBe(half)
  await page.getByText('recipient_not_on_whatsapp').waitFor()
  await page.getByText('This number is not on WhatsApp.').waitFor()
  await page.getByText('4 events').waitFor()
  expect(await page.getByText('2 messages').count()).toBe(1)
  expect(harness.complaints).toEqual([])
})
