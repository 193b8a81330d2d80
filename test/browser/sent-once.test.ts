import type { Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const ANA = '5511987654321'
const BRUNO = '5511987654322'
const NOT_ON_WHATSAPP = '15005550001'
/** The browser's own console lines about a call without an answer. */
const NOT_ANSWERED = /net::ERR_/

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(() => harness.dispose())
afterEach(async () => {
  await harness.closePages()
  expect(harness.complaints.filter(line => !NOT_ANSWERED.test(line))).toEqual([])
  harness.complaints.length = 0
})

/** Holds the sends of the page, from the call with this number on, until `release`. */
async function holdSends(page: Page, from = 1): Promise<{ count: () => number; release: () => void }> {
  const gate = Promise.withResolvers<void>()
  let calls = 0
  await page.route(/\/messages$/, async route => {
    if (route.request().method() !== 'POST') return route.continue()
    calls += 1
    if (calls >= from) await gate.promise
    await route.continue()
  })
  return { count: () => calls, release: gate.resolve }
}

/** The service accepts the next message, and its answer is lost. */
async function loseNextAnswer(page: Page): Promise<void> {
  let isLost = false
  await page.route(/\/messages$/, async route => {
    if (route.request().method() !== 'POST' || isLost) return route.continue()
    isLost = true
    await route.fetch()
    await route.abort('connectionreset')
  })
}

const textsOf = async (id: string) => (await harness.service.admin.listMessages(id)).map(({ text }) => text).toSorted()

/** An instance with messages that failed. */
async function createFailed(name: string, texts: readonly string[]): Promise<string> {
  const { id, token } = await harness.service.admin.createConnected(name)
  for (const text of texts) await harness.service.instance(id, token).send(NOT_ON_WHATSAPP, text)
  await until('the failures', async () => {
    return (await harness.service.admin.listMessages(id, '?state=failed')).length === texts.length
  })
  return id
}

/** The field of the open conversation. */
const fieldOf = (page: Page, number: string) => page.getByRole('textbox', { name: en.inbox.text(`+${number}`) })

/** An instance with two conversations. */
async function createChats(name: string): Promise<string> {
  const { id } = await harness.service.admin.createConnected(name)
  for (const from of [ANA, BRUNO]) await harness.service.admin.writeAsContact(id, { from, text: 'Hello' })
  return id
}

test('stopping the sending of selected messages stops it; sending the rest later sends each message once', async () => {
  const id = await createFailed('Stopped', ['first', 'second', 'third'])
  const page = await harness.openSignedIn(`/instances/${id}/messages`)
  await page.getByRole('row').filter({ hasText: 'third' }).waitFor()
  await page.getByRole('checkbox', { name: 'Select all loaded rows' }).check()
  await page.getByRole('button', { name: 'Send 3 again' }).click()
  const dialog = page.getByRole('dialog')
  const sends = await holdSends(page, 2)
  await dialog.getByRole('button', { name: 'Send 3 again' }).click()
  await until('the second call', () => sends.count() === 2)
  await page.getByText('2 rows are selected').waitFor()
  await dialog.getByRole('button', { name: 'Stop' }).click()
  sends.release()
  await page.getByText(en.tools.selection.stopped(2, 1)).waitFor()
  expect(sends.count()).toBe(2)
  await page.getByText('1 row is selected').waitFor()

  await dialog.getByRole('button', { name: 'Send 1 again' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect(await textsOf(id)).toEqual(['first', 'first', 'second', 'second', 'third', 'third'])
})

test('a text that is on its way while another chat is opened is shown as such, takes no other quote, and is sent once', async () => {
  const id = await createChats('Switching')
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`)
  const sends = await holdSends(page)
  await fieldOf(page, ANA).fill('on its way')
  await fieldOf(page, ANA).press('Enter')
  await until('the call', () => sends.count() === 1)
  await page.locator(`a[data-chat="${BRUNO}"]`).click()
  await fieldOf(page, BRUNO).waitFor()
  expect(await fieldOf(page, BRUNO).inputValue()).toBe('')
  await page.locator(`a[data-chat="${ANA}"]`).click()
  expect(await fieldOf(page, ANA).inputValue()).toBe('on its way')
  expect(await fieldOf(page, ANA).isEditable()).toBe(false)
  await page.getByRole('button', { name: en.inbox.actions('Hello') }).click()
  expect(await page.getByRole('menuitem', { name: en.inbox.reply }).isDisabled()).toBe(true)
  await page.keyboard.press('Escape')
  await fieldOf(page, ANA).press('Enter')
  sends.release()
  await until('an empty field', async () => (await fieldOf(page, ANA).inputValue()) === '')
  expect(sends.count()).toBe(1)
  expect(await textsOf(id)).toEqual(['on its way'])
})

test('while the message of the form is being sent, nothing in the form can be changed', async () => {
  const { id } = await harness.service.admin.createConnected('Form')
  const page = await harness.openSignedIn(`/instances/${id}`)
  const sends = await holdSends(page)
  const text = page.getByLabel(en.send.text, { exact: true })
  await text.fill('the whole text')
  await page.getByRole('button', { name: en.send.action, exact: true }).click()
  await until('the call', () => sends.count() === 1)
  expect(await text.isEditable()).toBe(false)
  expect(await page.getByLabel(en.send.to, { exact: true }).isEditable()).toBe(false)
  expect(await page.getByRole('button', { name: en.files.attach }).isEnabled()).toBe(false)
  await page
    .locator('input[type="file"]')
    .setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('A note') })
  expect(await page.getByText('note.txt').count()).toBe(0)
  sends.release()
  await page.waitForURL(/messages\?open=/)
  expect(await textsOf(id)).toEqual(['the whole text'])
})

test('Enter and Escape that end the composition of a Japanese word neither send the text nor drop its quote', async () => {
  const id = await createChats('Composing')
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`)
  const field = fieldOf(page, ANA)
  await page.getByRole('button', { name: en.inbox.actions('Hello') }).click()
  await page.getByRole('menuitem', { name: en.inbox.reply }).click()
  await field.fill('日本')
  // Safari marks this key by its code only.
  await field.dispatchEvent('keydown', { key: 'Enter', keyCode: 229 })
  await field.dispatchEvent('keydown', { key: 'Escape', isComposing: true })
  await field.fill('日本語')
  await field.press('Enter')
  await until('an empty field', async () => (await field.inputValue()) === '')
  expect(await textsOf(id)).toEqual(['日本語'])
  expect((await harness.service.admin.listMessages(id))[0]).toMatchObject({ quote: expect.anything() })
})

test('an edit that is on its way is not given up, and its outcome is reported although another chat is open', async () => {
  const id = await createChats('Failed edit')
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`)
  await fieldOf(page, ANA).fill('See you at six')
  await fieldOf(page, ANA).press('Enter')
  const beginEdit = async () => {
    await page.getByRole('button', { name: en.inbox.actions('See you at six') }).click()
    await page.getByRole('menuitem', { name: en.inbox.edit }).click()
  }
  const gate = Promise.withResolvers<void>()
  await page.route(/\/messages\/msg_\w+$/, async route => {
    await gate.promise
    await route.fulfill({ status: 409, json: { error: { code: 'edit_window_closed', message: 'Too late.' } } })
  })
  await beginEdit()
  const edit = page.getByRole('textbox', { name: en.inbox.editingTitle })
  await edit.fill('See you at seven')
  await edit.press('Enter')
  await edit.press('Escape')
  expect(await edit.inputValue()).toBe('See you at seven')
  await page.locator(`a[data-chat="${BRUNO}"]`).click()
  await edit.waitFor({ state: 'detached' })
  gate.resolve()
  await page.getByRole('status').getByText(en.inbox.failedCommands.edit).waitFor()
  await page.locator(`a[data-chat="${ANA}"]`).click()
  await beginEdit()
  expect(await edit.inputValue()).toBe('See you at seven')

  const failElsewhere = async (fail: (route: Route) => Promise<void>) => {
    const held = Promise.withResolvers<Route>()
    await page.unrouteAll()
    await page.route(/\/messages\/msg_\w+$/, route => held.resolve(route))
    await edit.press('Enter')
    const route = await held.promise
    await page.locator(`a[data-chat="${BRUNO}"]`).click()
    await edit.waitFor({ state: 'detached' })
    await fail(route)
  }
  // Without an answer, the panel does not claim that it failed.
  await failElsewhere(route => route.abort('connectionreset'))
  await page.getByRole('status').getByText(en.problems.unanswered, { exact: true }).waitFor()
  await page.locator(`a[data-chat="${ANA}"]`).click()
  await beginEdit()
  const endedEdit = `${en.inbox.failedCommands.edit} ${en.problems.invalid_admin_key}`
  const ended = { error: { code: 'invalid_admin_key', message: 'Ended.' } }
  await failElsewhere(route => route.fulfill({ status: 401, json: ended }))
  await page.getByText('Your session has ended').waitFor()
  expect(await page.getByRole('status').getByText(endedEdit).count()).toBe(0)
})

test('a text with a quote whose answer was lost is sent once, even after another chat was opened', async () => {
  const id = await createChats('Lost answer')
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`)
  await page.getByRole('button', { name: en.inbox.actions('Hello') }).click()
  await page.getByRole('menuitem', { name: en.inbox.reply }).click()
  await loseNextAnswer(page)
  await fieldOf(page, ANA).fill('only once')
  await fieldOf(page, ANA).press('Enter')
  await page.getByText(en.send.unanswered).waitFor()
  await page.locator(`a[data-chat="${BRUNO}"]`).click()
  await fieldOf(page, BRUNO).waitFor()
  expect(await page.getByText(en.send.unanswered).count()).toBe(0)
  await page.locator(`a[data-chat="${ANA}"]`).click()
  await page.getByText(en.send.unanswered).waitFor()
  await fieldOf(page, ANA).press('Enter')
  await until('an empty field', async () => (await fieldOf(page, ANA).inputValue()) === '')
  expect(await textsOf(id)).toEqual(['only once'])
  const [sent] = await harness.service.admin.listMessages(id)
  expect(sent).toMatchObject({ quote: expect.anything() })
})

test('a failed message that is sent again without an answer goes out once, even if its dialog is closed first', async () => {
  const id = await createFailed('Dialog', ['Once more'])
  const page = await harness.openSignedIn(`/instances/${id}/messages`)
  const form = page.getByRole('dialog', { name: 'Send again' })
  const open = async () => {
    await page
      .getByRole('row')
      .filter({ hasText: `+${NOT_ON_WHATSAPP}` })
      .last()
      .getByRole('link')
      .click()
    await page.getByRole('dialog', { name: 'Message' }).getByRole('button', { name: 'Send again…' }).click()
    await form.getByLabel('Text').waitFor()
  }
  await open()
  await form.getByLabel('To').fill(ANA)
  await loseNextAnswer(page)
  await form.getByRole('button', { name: 'Send', exact: true }).click()
  await form.getByText(en.send.unanswered).waitFor()
  await page.keyboard.press('Escape')
  await form.waitFor({ state: 'detached' })
  await open()
  await form.getByText(en.send.unanswered).waitFor()
  expect(await form.getByLabel('To').inputValue()).toBe(ANA)
  await form.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('dialog', { name: 'Message' }).getByText('The recipient has opened it.').waitFor()
  expect(await textsOf(id)).toEqual(['Once more', 'Once more'])
  await form.waitFor({ state: 'detached' })
  await page.keyboard.press('Escape')
  await page.getByRole('dialog', { name: 'Message' }).waitFor({ state: 'detached' })

  // The dialog is closed before the answer. When it is opened again, it still waits for the answer.
  await page.unrouteAll()
  const sends = await holdSends(page)
  await open()
  await form.getByLabel('To').fill(BRUNO)
  await form.getByRole('button', { name: 'Send', exact: true }).click()
  await until('the call', () => sends.count() === 1)
  await page.keyboard.press('Escape')
  await form.waitFor({ state: 'detached' })
  await open()
  await form.locator('button[type="submit"]:disabled').waitFor()
  expect(await form.getByLabel('To').inputValue()).toBe(BRUNO)
  sends.release()
  await page.getByRole('dialog', { name: 'Message' }).getByText(`+${BRUNO}`).waitFor()
  expect(sends.count()).toBe(1)
  expect(await textsOf(id)).toEqual(['Once more', 'Once more', 'Once more'])
})
