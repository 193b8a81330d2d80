import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '100,100' })
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

test('a failing webhook shows its attempts, and a redelivery succeeds once the webhook works again', async () => {
  const { id, token } = await harness.service.admin.createConnected('Shop')
  const page = await harness.openSignedIn(`/instances/${id}/webhook`)
  await page.getByLabel('URL').fill('not a url')
  await page.getByLabel('URL').blur()
  await page.getByText('Enter a full URL').first().waitFor()
  expect(await page.getByText('Enter a full URL').count()).toBe(1)
  await page.getByLabel('URL').fill('http://169.254.169.254/')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.locator('main [role="alert"]').first().waitFor()
  expect(await page.locator('main [role="alert"]').count()).toBe(1)
  expect(await page.getByText('Enter a full URL').count()).toBe(0)
  await page.getByLabel('URL').fill(harness.receiver.url)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved. New events are posted there.').waitFor()

  harness.receiver.answerWith({ kind: 'status', status: 500, body: 'the database is asleep' })
  await page.getByRole('button', { name: 'Send a test event' }).click()
  await page.getByText('It answered 500. Only 2xx counts as received.').waitFor()

  await harness.service.instance(id, token).send('5511987654321', 'Hello')
  await page.getByRole('navigation', { name: 'Sections' }).getByText('Events').click()
  const row = page.getByRole('row').filter({ hasText: 'message.sent' })
  await row.getByText('Given up').waitFor()
  await row.getByRole('link').click()
  await page.getByText('All attempts failed').waitFor()
  for (const attempt of ['Attempt 1', 'Attempt 2', 'Attempt 3'])
    await page.getByText(attempt, { exact: true }).waitFor()
  await page.locator('summary', { hasText: 'Response' }).first().click()
  await page.getByText('the database is asleep').first().waitFor()
  await page.locator('summary', { hasText: 'Headers' }).first().click()
  const shown = await page.getByLabel('Headers').first().textContent()
  const posted = harness.receiver.requests.find(({ headers }) => headers['x-service-event'] === 'message.sent')!
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature', 'x-service-signature']) {
    expect(shown?.toLowerCase()).toContain(`${name}: ${posted.headers[name]}`.toLowerCase())
  }
  expect(JSON.parse((await page.getByRole('region', { name: 'Body' }).textContent())!)).toEqual(
    JSON.parse(posted.body.toString()),
  )
  await page.locator('label', { hasText: 'Exact bytes' }).click()
  expect(await page.getByRole('region', { name: 'Body' }).textContent()).toBe(posted.body.toString())

  // An error of this event is not shown with the next one, which was read before.
  const shownEvent = page.getByRole('dialog').locator('code').first()
  const [next, previous] = ['Next (J)', 'Previous (K)'].map(name => page.getByRole('button', { name }))
  const isShown = (kind: string) => until(kind, async () => (await shownEvent.textContent()) === kind)
  await next!.click()
  await until('the next event', async () => (await shownEvent.textContent()) !== 'message.sent')
  await previous!.click()
  await isShown('message.sent')
  const problem = page.getByRole('dialog').getByText(en.problems.delivery_pending)
  const refusal = { error: { code: 'delivery_pending', message: 'Pending.' } }
  await page.route(/\/redeliver$/, route => route.fulfill({ status: 409, json: refusal }))
  await page.getByRole('button', { name: 'Redeliver now' }).click()
  await problem.waitFor()
  await next!.click()
  await until('the next event', async () => (await shownEvent.textContent()) !== 'message.sent')
  expect(await problem.count()).toBe(0)
  await previous!.click()
  await isShown('message.sent')
  await page.unrouteAll({ behavior: 'wait' })

  harness.receiver.answerWith({ kind: 'status', status: 200 })
  await page.getByRole('button', { name: 'Redeliver now' }).click()
  await page.getByText('Redelivery', { exact: true }).waitFor()
  await page.getByText('answered 200').waitFor()
})

test('all exhausted events can be redelivered together, with a count before and the progress after', async () => {
  const { id, token } = await harness.service.admin.createConnected('Many')
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  harness.receiver.answerWith({ kind: 'status', status: 503 })
  for (const number of ['5511987654321', '5511987654322']) await instance.send(number, 'Hello')
  await until('six events given up', async () => {
    return (await harness.service.admin.listEvents(id, '?state=exhausted')).length === 6
  })
  harness.receiver.answerWith({ kind: 'status', status: 200 })
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByText('6 events of the last 7 days were given up').waitFor()
  await page.getByRole('link', { name: 'Show why, and redeliver' }).click()
  await page.getByRole('button', { name: 'Redeliver…' }).click()
  await page.getByText('6 events will be posted.').waitFor()
  const broken = { error: { code: 'internal_error', message: 'Broken.' } }
  await page.route(/\/deliveries\/counts/, route => route.fulfill({ status: 500, json: broken }))
  await page.getByRole('button', { name: 'Redeliver 6 events' }).click()
  await page.getByText('0 of 6 done').waitFor()
  expect(await page.getByText('All done.').count()).toBe(0)
  await page.unrouteAll({ behavior: 'wait' })
  harness.complaints.length = 0
  await page.getByText('6 of 6 done').waitFor()
  await page.getByText('All done.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByText('No events match these filters').waitFor()
  expect(await harness.service.admin.listEvents(id, '?state=delivered')).toHaveLength(6)
})

test('a redelivery waits for the count of the chosen events, and its dialog for its answer', async () => {
  const { id, token } = await harness.service.admin.createConnected('Counted')
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  harness.receiver.answerWith({ kind: 'status', status: 503 })
  await instance.send('5511987654321', 'Hello')
  await until('three events given up', async () => {
    return (await harness.service.admin.listEvents(id, '?state=exhausted')).length === 3
  })
  const page = await harness.openSignedIn(`/instances/${id}/events`)
  await page.getByRole('button', { name: 'Redeliver…' }).click()
  const redeliver = page.getByRole('dialog').getByRole('button', { name: /^Redeliver \d+ events$/ })
  const offered = page.getByRole('button', { name: 'Redeliver 3 events' })
  await offered.waitFor()
  const counted = Promise.withResolvers<void>()
  await page.route(/\/deliveries\/counts/, async route => {
    await counted.promise
    await route.continue()
  })
  const counting = page.waitForRequest(/\/deliveries\/counts/)
  await page.getByLabel('Created in').first().click()
  await page.getByRole('option', { name: 'the last 30 days' }).click()
  await counting
  await until('no offer of the earlier count', () => redeliver.isDisabled())
  expect(await offered.count()).toBe(0)
  counted.resolve()
  await offered.waitFor()

  const answered = Promise.withResolvers<void>()
  let calls = 0
  await page.route(/\/events\/redeliver$/, async route => {
    calls += 1
    await answered.promise
    await route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'Broken.' } } })
  })
  await offered.click()
  await until('the dialog to be busy', () => page.getByRole('button', { name: en.common.cancel }).isDisabled())
  await page.keyboard.press('Escape')
  answered.resolve()
  await page.getByRole('dialog').getByText(en.problems.internal_error).waitFor()
  expect(calls).toBe(1)
  await page.unrouteAll({ behavior: 'wait' })
  harness.complaints.length = 0
})

test('events without a URL can be filtered and counted, and are posted on request once there is one', async () => {
  const { id, token } = await harness.service.admin.createConnected('Late URL')
  const instance = harness.service.instance(id, token)
  await instance.send('5511987654321', 'Hello')
  await until(
    'three events',
    async () => (await harness.service.admin.listEvents(id, '?state=not_posted')).length === 3,
  )
  await instance.setWebhook(harness.receiver.url)
  harness.receiver.answerWith({ kind: 'status', status: 200 })
  const page = await harness.openSignedIn(`/instances/${id}/events`)
  await page.getByLabel('Delivery').first().click()
  await page.getByRole('option', { name: 'Not posted' }).click()
  await page.waitForURL(/state=not_posted/)
  await page.getByRole('row').nth(3).getByText('Not posted').waitFor()
  await page.getByRole('button', { name: 'Redeliver…' }).click()
  const dialog = page.getByRole('dialog')
  const choose = (state: string) => dialog.locator('label', { hasText: state }).click()
  // A failed count is reported only while its events are chosen.
  const broken = { error: { code: 'internal_error', message: 'Broken.' } }
  await page.route(/notPosted=true/, route => route.fulfill({ status: 500, json: broken }))
  await choose('Not posted')
  await dialog.getByText(en.problems.internal_error).waitFor()
  await choose('Given up')
  await dialog.getByText(en.redeliver.none).waitFor()
  expect(await dialog.getByRole('alert').count()).toBe(0)
  await page.unrouteAll({ behavior: 'wait' })
  harness.complaints.length = 0
  await choose('Not posted')
  await page.getByText('3 events will be posted.').waitFor()
  await page.getByRole('button', { name: 'Redeliver 3 events' }).click()
  await page.getByText('3 of 3 done').waitFor()
  await page.keyboard.press('Escape')
  await page.getByText('No events match these filters').waitFor()
  // The charts count them, and do not claim that nothing was delivered.
  await page.goto(`${harness.url}/instances/${id}`)
  await page.getByRole('listitem').filter({ hasText: 'By redelivery 3' }).waitFor()
  await page.getByText('All deliveries of this period are redeliveries').waitFor()
  expect(await page.getByText('Nothing was delivered').count()).toBe(0)
})

test('while a new secret is introduced, the page says until when the previous one signs', async () => {
  const { id, token } = await harness.service.admin.createConnected('New secret')
  const instance = harness.service.instance(id, token)
  const { secret: before } = await instance.setWebhook(harness.receiver.url)
  const page = await harness.openSignedIn(`/instances/${id}/webhook`)
  expect(await page.content()).not.toContain(before)
  await page.getByRole('button', { name: 'New secret' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'New secret' }).click()
  await page.getByText('It is shown only once').waitFor()
  const secret = await page.getByText(/^whsec_/).textContent()
  expect(secret).not.toBe(before)
  await page.getByText('The previous secret also signs until').waitFor()
  await page.reload()
  await page.getByText('The previous secret also signs until').waitFor()
  expect(await page.content()).not.toContain(secret)
})

test('events that are being retried can be filtered; once the receiver is fixed, one button retries one now, and one all', async () => {
  await using slow = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '3600000' })
  const { id, token } = await slow.service.admin.createConnected('Later')
  const instance = slow.service.instance(id, token)
  await instance.setWebhook(slow.receiver.url)
  slow.receiver.answerWith({ kind: 'status', status: 500 })
  for (const to of ['5511987654321', '5511987654322']) await instance.send(to, 'Hello')
  await until('two retries', async () => (await slow.service.admin.listEvents(id, '?state=retrying')).length === 2)
  slow.receiver.answerWith({ kind: 'status', status: 200 })
  const page = await slow.openSignedIn(`/instances/${id}/events?state=retrying`)
  for (const row of [1, 2]) await page.getByRole('row').nth(row).getByText('Retrying').waitFor()
  expect(await page.getByRole('row').count()).toBe(3)
  await page.getByRole('row').nth(1).getByRole('link').click()
  await page.getByRole('button', { name: 'Try now' }).click()
  await page.getByText('answered 200').waitFor()
  await page.goto(slow.url)
  await page.getByRole('button', { name: 'Retry all now' }).click()
  await page.getByText('1 event is being retried now.').waitFor()
  await until('all delivered', async () => (await slow.service.admin.listEvents(id, '?state=delivered')).length === 6)
  await page.getByRole('region', { name: /needs? attention/ }).waitFor({ state: 'detached' })
})

test('an event of the instance is listed under its own name, without a recipient', async () => {
  const { id } = await harness.service.admin.createConnected('Own events')
  const page = await harness.openSignedIn(`/instances/${id}/events`)
  const row = page.getByRole('row').filter({ hasText: 'instance.connected' })
  await row.waitFor()
  expect(await row.textContent()).not.toContain('message.')
  expect(await row.getByText('+', { exact: true }).count()).toBe(0)
})

test('a message shows its timeline, each step with its event', async () => {
  const { id, token } = await harness.service.admin.createConnected('Steps')
  const { id: messageId } = await harness.service.instance(id, token).send('15005550001', 'Nobody there')
  const page = await harness.openSignedIn(`/instances/${id}/messages?open=${messageId}`)
  await page.getByText('This number is not on WhatsApp.').waitFor()
  await page.getByText('Your webhook: not posted').waitFor()
  await page.getByRole('link', { name: 'Set a webhook URL' }).waitFor()
  await page.getByRole('link', { name: 'Open the event message.failed' }).click()
  await page.getByRole('dialog', { name: 'Event' }).getByText('message.failed').first().waitFor()
})

test('the list of instances distinguishes sent from failed messages', async () => {
  const { id, token } = await harness.service.admin.createConnected('Half')
  const instance = harness.service.instance(id, token)
  for (const to of ['5511987654321', '15005550001', '15005550001']) await instance.send(to, 'Hello')
  const page = await harness.openSignedIn('/')
  const row = page.getByRole('row').filter({ hasText: id })
  await row.getByText('1 sent, 0 received in the last hour').waitFor()
  await row.getByText('2 failed (67%)').waitFor()
  await row.getByRole('link').click()
  await page.getByRole('listitem').filter({ hasText: 'recipient_not_on_whatsapp 2' }).waitFor()
  await page.getByRole('listitem').filter({ hasText: 'Sent 1' }).waitFor()
  await page.getByRole('listitem').filter({ hasText: 'Failed 2' }).waitFor()
})

test('the lists apply the chosen filters, and the URL contains them', async () => {
  const { id, token } = await harness.service.admin.createConnected('Filters')
  const instance = harness.service.instance(id, token)
  await instance.send('15005550001', 'to nobody')
  await instance.send('5511987654321', 'to somebody')
  const page = await harness.openSignedIn(`/instances/${id}/messages?state=failed`)
  await page.getByText('to nobody').waitFor()
  expect(await page.getByText('to somebody').count()).toBe(0)
  await page.goto(`${harness.url}/instances/${id}/messages`)
  for (const [typed, found, missing] of [
    ['+55 11 98765', 'to somebody', 'to nobody'],
    ['TO NOB', 'to nobody', 'to somebody'],
  ] as const) {
    await page.getByLabel('Search').fill(typed)
    await page.waitForURL(url => url.searchParams.get('search') === typed)
    await page.getByText(found).waitFor()
    await page.getByText(missing).waitFor({ state: 'detached' })
  }
})

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
  // A read that an earlier test lets fail may be reported late.
  expect(harness.complaints.filter(line => !line.includes('status of 500'))).toEqual([])
})
