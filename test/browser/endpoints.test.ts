import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { DEFAULT_ENDPOINT } from '../../src/domain/events/endpoint.ts'
import { findFreePort } from '../free-port.ts'
import { isSigned, Receiver } from '../receiver.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'
import { openAs } from './invite.ts'

let harness: PanelHarness
let crm: Receiver
/** A person's phone. */
let phone: Receiver
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '3600000' })
  crm = await new Receiver().listen()
  phone = await new Receiver().listen()
})
afterAll(async () => {
  await harness.dispose()
  await crm.close()
  await phone.close()
})
afterEach(() => harness.closePages())

test('endpoints are added with a filter, tested, paused, resumed, filtered in the log and removed', async () => {
  const { id, token } = await harness.service.admin.createConnected('Two endpoints')
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  const page = await harness.openSignedIn(`/instances/${id}/webhook`)
  await page.getByRole('button', { name: 'Add an endpoint' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('URL').fill(crm.url)
  await dialog.getByLabel('Note').fill('CRM')
  await dialog.getByRole('radio', { name: 'Only these' }).check()
  for (const kind of ['message.received', 'message.delivered', 'message.read', 'message.failed'])
    await dialog.getByRole('checkbox', { name: kind }).uncheck()
  await dialog.getByRole('button', { name: 'Add an endpoint' }).click()
  const secret = (await page.getByText(/^whsec_/).textContent())!
  await page.getByRole('button', { name: 'I have copied it' }).click()
  const card = page.locator('main section').filter({ hasText: crm.url })
  await card.getByText('Nothing delivered yet').waitFor()
  await card.getByRole('button', { name: 'Send a test event' }).click()
  await card.getByText('The test event was received.').waitFor()
  expect(isSigned(crm.requests[0]!, secret)).toBe(true)

  await card.getByRole('button', { name: 'Pause' }).click()
  await card.getByText('Nothing is posted.').waitFor()
  await instance.send('5511987654321', 'Hello')
  await harness.receiver.waitFor(3)
  await card.getByText('Waiting').locator('..').getByText('1 event').waitFor()
  expect(crm.requests).toHaveLength(1)
  await card.getByRole('button', { name: 'Resume' }).click()
  await card.getByText('Working').waitFor()
  expect(crm.events.map(({ event }) => event)).toEqual(['webhook.test', 'message.sent'])

  await card.getByRole('link', { name: 'Deliveries' }).click()
  await page.waitForURL(/endpoint=endpoint_/)
  await until('one row', async () => (await page.getByRole('row').count()) === 2)
  await page.getByRole('row').nth(1).getByText('message.sent').waitFor()
  await page.getByRole('navigation', { name: 'Sections' }).getByText('Webhook').click()
  await card.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await card.waitFor({ state: 'detached' })
  expect(harness.complaints).toEqual([])
})

test('the answer to a test event is not shown for another URL', async () => {
  const { id, token } = await harness.service.admin.createConnected('Changed URL')
  await harness.service.instance(id, token).setWebhook(harness.receiver.url)
  const page = await harness.openSignedIn(`/instances/${id}/webhook`)
  const received = page.getByText('The test event was received.')
  const changeTo = async (url: string) => {
    await page.getByRole('button', { name: /^Edit / }).click()
    await page.getByRole('dialog').getByLabel('URL').fill(url)
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: `Edit ${url}` }).waitFor()
  }
  await page.getByRole('button', { name: 'Send a test event' }).click()
  await received.waitFor()
  await changeTo(`${crm.url}/new`)
  expect(await received.count()).toBe(0)
  await page.getByRole('button', { name: 'Send a test event' }).click()
  await received.waitFor()
  expect(harness.complaints).toEqual([])
})

test.each(['owner', 'operator'] as const)(
  'an %s who opens an endpoint again sees what was saved, on a slow link too',
  async role => {
    const { id, token } = await harness.service.admin.createConnected(`Slow list of an ${role}`)
    await harness.service.instance(id, token).setWebhook(harness.receiver.url)
    const page = await openAs(harness, `${role}@example.com`, role, 'correct horse battery')
    await page.goto(`${harness.url}/instances/${id}/webhook`)
    const edit = page.getByRole('button', { name: /^Edit / })
    const dialog = page.getByRole('dialog')
    await edit.waitFor()
    const list = Promise.withResolvers<void>()
    await page.route(/\/endpoint-health$/, async route => {
      await list.promise
      await route.continue()
    })
    await edit.click()
    await dialog.getByLabel('URL').fill(`${crm.url}/saved`)
    if (role === 'owner') await dialog.getByLabel('Note').fill('Saved')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await edit.click()
    expect(await dialog.getByLabel('URL').inputValue()).toBe(`${crm.url}/saved`)
    if (role === 'owner') expect(await dialog.getByLabel('Note').inputValue()).toBe('Saved')
    list.resolve()
    await page.unrouteAll({ behavior: 'wait' })
    expect(harness.complaints).toEqual([])
  },
)

async function change(method: string, path: string, body: object): Promise<unknown> {
  const answer = await fetch(`${harness.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(answer.ok).toBe(true)
  return ((await answer.json()) as { data: unknown }).data
}

test('saving a note keeps the URL and the filter that somebody else saved meanwhile', async () => {
  const { id, token } = await harness.service.admin.createConnected('Two owners')
  await harness.service.instance(id, token).setWebhook(harness.receiver.url)
  const page = await harness.openSignedIn(`/instances/${id}/webhook`)
  await page.getByRole('button', { name: /^Edit / }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Note').fill('CRM')
  const endpoint = `/instances/${id}/endpoints/${DEFAULT_ENDPOINT}`
  const changes = { url: `${crm.url}/moved`, events: ['message.received'] }
  await change('PATCH', endpoint, changes)
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(await change('PATCH', endpoint, {})).toMatchObject({ ...changes, description: 'CRM' })
})

test('a killed receiver puts its instance on the first page and alerts a phone; one click recovers it later', async () => {
  const { id, token } = await harness.service.admin.createConnected('Killed receiver')
  const receiver = await new Receiver().listen(await findFreePort())
  await harness.service.instance(id, token).setWebhook(receiver.url)
  await change('PUT', '/alerts/rules/webhook_failing', { afterMinutes: 0 })
  await change('POST', '/alerts/targets', { name: 'Phone', channel: 'ntfy', url: phone.url })
  const page = await harness.openSignedIn('/')
  const row = page.getByRole('row').filter({ hasText: id })
  await row.getByText('Connected', { exact: true }).waitFor()
  const attention = page.getByRole('region', { name: /needs? attention/ })
  expect(await attention.count()).toBe(0)

  const { port } = receiver
  await receiver.close()
  await harness.service.instance(id, token).send('5511987654321', 'Hello')
  await attention.getByText('Killed receiver').waitFor()
  await row.getByText('Retrying').waitFor()
  const said = () => phone.requests.map(({ body }) => body.toString()).join('\n')
  await until('the alert', () => said().includes('Killed receiver'))

  await using again = await new Receiver().listen(port)
  await attention.getByRole('button', { name: 'Retry all now' }).click()
  await again.waitFor(3)
  await row.getByText('last delivered').waitFor()
  await attention.waitFor({ state: 'detached' })
  expect(again.events.map(({ event }) => event)).toEqual(['message.sent', 'message.delivered', 'message.read'])
  expect(harness.complaints).toEqual([])
})
