import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const RECIPIENT = '5511987654321'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(async () => {
  await harness.dispose()
  expect(harness.complaints).toEqual([])
})
afterEach(() => harness.closePages())

/** The changes that the page has requested, such as `POST keys`: the method and the last part of the path. */
function recordChanges(page: Page): string[] {
  const changes: string[] = []
  page.on('request', request => {
    const { pathname } = new URL(request.url())
    if (pathname.startsWith('/admin/v1/') && request.method() !== 'GET')
      changes.push(`${request.method()} ${pathname.split('/').at(-1)}`)
  })
  return changes
}

/** When the second click takes place: directly after the first one, or as soon as the service has answered the first one. */
const GAPS = ['at once', 'after the answer'] as const

async function clickTwice(page: Page, button: Locator, gap: (typeof GAPS)[number]): Promise<void> {
  await button.click({ trial: true })
  const box = (await button.boundingBox())!
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  const answer = page.waitForResponse(response => response.request().method() !== 'GET')
  await page.mouse.click(x, y)
  if (gap === 'after the answer') await answer
  await page.mouse.click(x, y, { clickCount: 2 })
  await answer
}

async function countInstances(): Promise<number> {
  const headers = { authorization: `Bearer ${harness.service.adminKey}` }
  const response = await fetch(`${harness.url}/admin/v1/instances`, { headers })
  return ((await response.json()) as { data: unknown[] }).data.length
}

const inDialog = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true })

test.each(GAPS)('a double click, the second %s, creates one instance with one token', async gap => {
  const before = await countInstances()
  const page = await harness.openSignedIn('/')
  const changes = recordChanges(page)
  if (before === 0) {
    await clickTwice(page, page.getByRole('button', { name: en.instances.trySandbox }), gap)
  } else {
    await page.getByRole('button', { name: en.instances.create }).click()
    await page.getByRole('radio', { name: en.instances.trySandbox }).check()
    await clickTwice(page, inDialog(page, en.instances.createAction), gap)
  }
  await page.waitForURL(/\/instances\/inst_/)
  await page.getByText('Messages are sent and received.').waitFor()
  expect(changes).toEqual(['POST instances'])
  expect(await countInstances()).toBe(before + 1)
})

test.each(GAPS)('a double click, the second %s, makes one key, one token, one endpoint, one secret', async gap => {
  const { id, token } = await harness.service.admin.createConnected(`Once ${gap}`)
  await harness.service.instance(id, token).setWebhook(harness.receiver.url)
  const crm = `${harness.receiver.url}/crm`
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  const changes = recordChanges(page)
  await page.getByRole('button', { name: en.keys.create }).click()
  await page.getByLabel(en.keys.name).fill('CRM')
  await clickTwice(page, inDialog(page, en.keys.createAction), gap)
  await page.getByRole('dialog').getByText(en.keys.once).waitFor()
  await inDialog(page, en.token.done).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })

  await page.getByRole('button', { name: en.instanceSettings.newToken }).click()
  await clickTwice(page, inDialog(page, en.instanceSettings.newTokenAction), gap)
  await page.getByRole('dialog').waitFor({ state: 'detached' })

  await page.goto(`${harness.url}/instances/${id}/webhook`)
  await page.getByRole('button', { name: en.endpoints.add }).click()
  await page.getByRole('dialog').getByLabel('URL').fill(crm)
  await clickTwice(page, inDialog(page, en.endpoints.add), gap)
  await page.getByText(/^whsec_/).waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: en.endpoints.rotateOf(crm) }).click()
  await page.getByRole('dialog').getByText(crm, { exact: true }).waitFor()
  await clickTwice(page, inDialog(page, en.webhook.rotate), gap)
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(changes).toEqual(['POST keys', 'POST token', 'POST endpoints', 'POST secret'])

  // The same dialog can be confirmed again.
  await page.getByRole('button', { name: en.endpoints.rotateOf(crm) }).click()
  await inDialog(page, en.webhook.rotate).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(changes).toHaveLength(5)
})

test.each(GAPS)('a double click, the second %s, invites a person once', async gap => {
  const page = await harness.openSignedIn('/people')
  const changes = recordChanges(page)
  await page.getByRole('button', { name: en.people.invite }).click()
  await page.getByRole('dialog').getByLabel(en.people.name).fill(`Ana ${gap}`)
  await clickTwice(page, inDialog(page, en.people.createLink), gap)
  await page.getByText(en.people.linkText).waitFor()
  expect(changes).toEqual(['POST accounts'])
})

test.each(GAPS)('a double click, the second %s, sends one message from the form and one from the dialog', async gap => {
  const { id } = await harness.service.admin.createConnected(`Send ${gap}`)
  const sent = async () => (await harness.service.admin.listMessages(id)).map(({ text }) => text).toSorted()
  const page = await harness.openSignedIn(`/instances/${id}`)
  const send = page.getByRole('button', { name: en.send.action, exact: true })
  await page.getByLabel(en.send.text, { exact: true }).fill('From the form')
  await clickTwice(page, send, gap)
  await page.getByText('The recipient has opened it.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await sent()).toEqual(['From the form'])

  await page.getByRole('button', { name: en.messages.send, exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(en.send.text, { exact: true }).fill('From the dialog')
  await dialog.getByLabel('To', { exact: true }).fill(RECIPIENT)
  await clickTwice(page, inDialog(page, en.send.action), gap)
  await until('the second message', async () => (await sent()).length > 1)
  await page.getByText('The recipient has opened it.').waitFor()
  expect(await sent()).toEqual(['From the dialog', 'From the form'])
})

/** True if the focus is on the element or inside it. */
function hasFocus(element: Locator): Promise<boolean> {
  return element.evaluate(one => one.contains(document.activeElement))
}

test('a dialog stays open while its call runs, so the answer cannot close the dialog of another person', async () => {
  const page = await harness.openSignedIn('/people')
  await page.getByRole('button', { name: en.people.invite }).click()
  await page.getByRole('dialog').getByLabel(en.people.name).fill('Bia')
  await inDialog(page, en.people.createLink).click()
  await inDialog(page, en.token.done).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const gate = Promise.withResolvers<void>()
  await page.route('**/accounts/*/access', async route => {
    await gate.promise
    await route.continue()
  })
  const change = page.getByRole('button', { name: en.people.changeLabel('Bia') })
  await change.click()
  const dialog = page.getByRole('dialog', { name: en.people.changeLabel('Bia') })
  const call = page.waitForRequest('**/accounts/*/access')
  await inDialog(page, en.common.save).click()
  await call
  await until('the dialog to show that it is busy', () => inDialog(page, en.common.cancel).isDisabled())
  await page.keyboard.press('Escape')
  expect(await inDialog(page, en.common.close).isDisabled()).toBe(true)
  expect(await dialog.isVisible()).toBe(true)
  expect(await hasFocus(dialog)).toBe(true)
  gate.resolve()
  await dialog.waitFor({ state: 'detached' })

  // The same for a confirmation.
  const second = Promise.withResolvers<void>()
  let refusal: object | null = { error: { code: 'account_not_found', message: 'Not found.' } }
  await page.route('**/accounts/*', async route => {
    await second.promise
    await (refusal ? route.fulfill({ status: 404, json: refusal }) : route.continue())
  })
  await page.getByRole('button', { name: en.people.removeLabel('Bia') }).click()
  await inDialog(page, en.people.remove).click()
  await until('the dialog to show that it is busy', () => inDialog(page, en.common.cancel).isDisabled())
  await page.keyboard.press('Escape')
  expect(await inDialog(page, en.common.cancel).isVisible()).toBe(true)
  expect(await hasFocus(page.getByRole('dialog'))).toBe(true)
  second.resolve()
  // After a refusal, the pressed button has the focus again.
  await until('the focus on the button', () => hasFocus(inDialog(page, en.people.remove)))
  refusal = null
  await page.keyboard.press('Enter')
  await page.getByText(en.people.removed).waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})
