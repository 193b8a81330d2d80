import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

const copied = (page: Page) => page.evaluate(() => navigator.clipboard.readText())

test('a newcomer sees a signed event without running anything, and the list of steps ends with their own program', async () => {
  // The instance's events also go to this operator endpoint, which does not count as one of the first steps.
  const forAll = await fetch(`${harness.url}/admin/v1/endpoints`, {
    method: 'POST',
    headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url: harness.receiver.url }),
  })
  expect(forAll.status).toBe(201)
  const { id, token } = await harness.service.admin.createConnected('Newcomer')
  await until('the event for the operator', async () => {
    return (await harness.service.admin.listEvents(id, '?state=delivered')).length > 0
  })
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByText('1 of 4 done').waitFor()
  await page.getByRole('button', { name: 'Use the test receiver' }).waitFor()
  await harness.service.instance(id, token).send('5511987654321', 'Hello')
  await page.getByText('2 of 4 done').waitFor()
  await page.getByRole('button', { name: 'Use the test receiver' }).click()
  await page.getByText('3 of 4 done').waitFor()
  await page.getByRole('link', { name: 'Open the event' }).click()
  await page.locator('summary', { hasText: 'Response' }).first().click()
  await page.getByText('"signature": "valid"').waitFor()
  await page.goto(`${harness.url}/instances/${id}/webhook`)
  await page.getByText('Test receiver of Pombal').waitFor()
  await page.getByRole('button', { name: 'Send a test event' }).click()
  await page.getByText('The test event was received.').waitFor()
  await harness.service.instance(id, token).setWebhook(harness.receiver.url)
  await page.goto(`${harness.url}/instances/${id}`)
  await page.getByText('By outcome').first().waitFor()
  expect(await page.getByText('First steps').count()).toBe(0)
  expect(harness.complaints).toEqual([])
})

test('a failed message says what to do, is sent again from a form that shows it, and its call is copied without the token', async () => {
  const { id, token } = await harness.service.admin.createConnected('Again')
  const instance = harness.service.instance(id, token)
  await instance.send('15005550003', 'not among the failed')
  for (const text of ['=1+1', 'the second']) await instance.send('15005550001', text)
  const page = await harness.openSignedIn(`/instances/${id}/messages?state=failed`, {
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  await until('two failures', async () => (await page.getByRole('table').getByText('Failed').count()) === 2)

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export CSV' }).click(),
  ])
  const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n')
  expect(lines[0]).toContain('id,status,to,text')
  expect(lines[2]).toContain(",15005550001,'=1+1,")
  expect(lines).toHaveLength(3)

  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  const drawer = page.getByRole('dialog', { name: 'Message' })
  await drawer.getByText('the second').waitFor()
  await page.keyboard.press('j')
  await drawer.getByText('=1+1').waitFor()
  await drawer.getByRole('button', { name: 'Previous' }).click()
  await drawer.getByText('the second').waitFor()
  await drawer.getByText('recipient_not_on_whatsapp').waitFor()
  await drawer.getByText('Correct the number').waitFor()
  await drawer.getByRole('button', { name: /^Copy as curl/ }).click()
  const command = await until('the call', async () => (await copied(page)) || null)
  expect(command).toContain('Bearer $POMBAL_TOKEN')
  expect(command).not.toContain('pmb_')

  await drawer.getByRole('button', { name: 'Send again…' }).click()
  const form = page.getByRole('dialog', { name: 'Send again' })
  expect(await form.getByLabel('Text').inputValue()).toBe('the second')
  await form.getByLabel('To').fill('5511987654321')
  expect(await harness.service.admin.listMessages(id)).toHaveLength(3)
  await form.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('The recipient has opened it.').waitFor()
  expect(harness.complaints).toEqual([])
})

test('copying works where the browser has no clipboard API, as over http on another host, also in a dialog', async () => {
  const { id, token } = await harness.service.admin.createConnected('Plain http')
  const { id: messageId } = await harness.service.instance(id, token).send('5511987654321', 'Hello')
  const page = await harness.openSignedIn(`/instances/${id}/messages?open=${messageId}`, {
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  // The API is kept to read what was copied.
  await page.addInitScript(() => {
    Object.assign(window, { kept: navigator.clipboard })
    Reflect.deleteProperty(Navigator.prototype, 'clipboard')
  })
  await page.reload()
  const kept = () => page.evaluate(() => (window as unknown as { kept: Clipboard }).kept.readText())
  const drawer = page.getByRole('dialog', { name: 'Message' })
  await drawer.getByRole('button', { name: 'Copy Message ID' }).click()
  await until('the ID', async () => (await kept()) === messageId)
  await drawer.getByRole('button', { name: /^Copy as curl/ }).press('Enter')
  await page.getByText('Copied. Set POMBAL_TOKEN').waitFor()
  expect(await kept()).toContain(`/v1/messages/${messageId}`)
  expect(await page.evaluate(() => document.activeElement?.textContent)).toContain('Copy as curl')
  expect(harness.complaints).toEqual([])
})

test('the search finds messages, events and numbers in all instances by keyboard, and times follow the chosen zone', async () => {
  const { id, token } = await harness.service.admin.createConnected('Needle')
  const message = await harness.service.instance(id, token).send('5511912345678', 'Find me')
  const [event] = await until('an event', async () => {
    const events = await harness.service.admin.listEvents(id, '?kind=message.read')
    return events.length > 0 && events
  })
  const page = await harness.openSignedIn('/settings')
  await page.getByRole('combobox', { name: 'Time zone' }).fill('Tokyo')
  await page.getByRole('option', { name: 'Asia/Tokyo' }).click()
  const find = async (text: string, option: RegExp, opens: RegExp) => {
    await page.keyboard.press(text.startsWith('evt') ? '/' : 'Control+k')
    const field = page.getByRole('combobox', { name: /message ID/ })
    await field.fill(text)
    await page.getByRole('option', { name: option }).first().waitFor()
    await field.press('Enter')
    await page.waitForURL(opens)
    await page.getByRole('dialog', { name: 'Find anything' }).waitFor({ state: 'detached' })
  }
  await page.locator('h1').click()
  await find(message.id, /Needle/, /messages\?open=msg_/)
  const { createdAt } = (await harness.service.admin.listMessages(id))[0]!
  const clock = new Date(createdAt).toLocaleTimeString('en-GB', { timeZone: 'Asia/Tokyo' })
  await page.getByRole('dialog', { name: 'Message' }).getByText(clock).first().waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await find(event!.id, /Needle/, /events\?open=evt_/)
  await page.getByRole('dialog', { name: /^Event/ }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await find('+55 11 91234-5678', /Needle/, /messages\?search=5511912345678/)
  await page.getByText('Find me').waitFor()
  expect(harness.complaints).toEqual([])
})

test('a search that fails says so, and works when it is tried again', async () => {
  const { id } = await harness.service.admin.createInstance('sandbox', 'Haystack')
  const page = await harness.openSignedIn('/settings')
  const refuse = (path: string) =>
    page.route(path, route =>
      route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'A failure.' } } }),
    )
  await refuse('**/admin/v1/search?*')
  await refuse('**/admin/v1/instances?*')
  await page.locator('h1').first().waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: /message ID/ }).fill('Haystack')
  const dialog = page.getByRole('dialog', { name: 'Find anything' })
  await dialog.getByText('Something went wrong in Pombal.').waitFor()
  expect(await dialog.getByText('Nothing found').count()).toBe(0)
  await page.unrouteAll()
  await dialog.getByRole('button', { name: 'Try again' }).click()
  await dialog.getByRole('option', { name: /Haystack/ }).click()
  await page.waitForURL(new RegExp(`/instances/${id}$`))
  // The browser reports the failed calls.
  harness.complaints.length = 0
})

test('the pace of an instance is set in its settings, and read back; a refusal of the service is shown', async () => {
  const { id } = await harness.service.admin.createConnected('Paced')
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  const card = page.locator('section', { has: page.getByRole('heading', { name: 'Pace' }) })
  await card.getByLabel('Messages a minute').fill('20')
  await card.getByLabel('New recipients a day').fill('0')
  await card.getByLabel('Quiet from').fill('22:00')
  await card.getByLabel('Quiet until').fill('07:30')
  await card.getByLabel('Time zone').fill('Nowhere/Here')
  await card.getByRole('button', { name: 'Save' }).click()
  await card.getByText('must be the name of a time zone').waitFor()
  await card.getByLabel('Time zone').fill('America/Sao_Paulo')
  await card.getByRole('switch').check({ force: true })
  await card.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The pace was saved.').waitFor()
  const response = await fetch(`${harness.url}/admin/v1/instances/${id}/pace`, {
    headers: { authorization: `Bearer ${harness.service.adminKey}` },
  })
  const quietHours = { from: '22:00', until: '07:30' }
  const pace = { perMinute: 20, newRecipientsPerDay: 0, quietHours, timeZone: 'America/Sao_Paulo', typing: true }
  expect(await response.json()).toEqual({ data: pace })

  await page.reload()
  await until('the saved pace', async () => (await card.getByLabel('Quiet until').inputValue()) === '07:30')
  await card.getByLabel('Messages a minute').fill('')
  await card.getByLabel('Quiet from').fill('')
  await card.getByLabel('Quiet until').fill('')
  await card.getByRole('button', { name: 'Save' }).click()
  await until('no limit a minute', async () => {
    const again = await fetch(`${harness.url}/admin/v1/instances/${id}/pace`, {
      headers: { authorization: `Bearer ${harness.service.adminKey}` },
    })
    const { data } = (await again.json()) as { data: { perMinute: number | null; quietHours: object | null } }
    return data.perMinute === null && data.quietHours === null
  })
})
