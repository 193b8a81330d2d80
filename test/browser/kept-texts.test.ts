import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { until } from '../until.ts'
import { ADMIN_KEY, PanelHarness } from './harness.ts'
import { invite, openAs } from './invite.ts'

const ANA = '5511987654321'
const PASSWORD = 'correct horse battery'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

const fieldOf = (page: Page) => page.getByRole('textbox', { name: en.inbox.text(`+${ANA}`) })
const section = (page: Page, name: string) => page.getByRole('navigation', { name: 'Sections' }).getByText(name).click()

/** An instance with a conversation. */
async function createChat(name: string): Promise<string> {
  const { id } = await harness.service.admin.createConnected(name)
  await harness.service.admin.writeAsContact(id, { from: ANA, text: 'Hello' })
  return id
}

/** Goes from any page of the panel to the conversation, without reloading the page. */
async function openChat(page: Page, instance: string): Promise<void> {
  await page.getByRole('link', { name: 'Pombal, all instances' }).click()
  await page.getByRole('row').filter({ hasText: instance }).getByRole('link').first().click()
  await section(page, 'Inbox')
  await page.locator(`a[data-chat="${ANA}"]`).click()
  await fieldOf(page).waitFor()
}

test('an unsent text of the inbox is there again after another page, and not after signing out', async () => {
  const id = await createChat('Left inbox')
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`)
  await fieldOf(page).fill('half a sen')
  await section(page, 'Messages')
  await page.getByRole('heading', { name: 'Messages', exact: true }).waitFor()
  await openChat(page, 'Left inbox')
  expect(await fieldOf(page).inputValue()).toBe('half a sen')

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/\/sign-in/)
  await page.locator('input[type="password"]').fill(ADMIN_KEY)
  await page.keyboard.press('Enter')
  await openChat(page, 'Left inbox')
  expect(await fieldOf(page).inputValue()).toBe('')
  expect(harness.complaints).toEqual([])
})

function editFieldOf(page: Page) {
  return page.getByRole('textbox', { name: en.inbox.editingTitle })
}

async function beginEdit(page: Page): Promise<void> {
  await page.getByRole('button', { name: en.inbox.actions('See you at six') }).click()
  await page.getByRole('menuitem', { name: en.inbox.edit }).click()
  await editFieldOf(page).waitFor()
}

test('an unsent edit of a message is there again when the message is edited again after another page', async () => {
  const id = await createChat('Left edit')
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`)
  await fieldOf(page).fill('See you at six')
  await fieldOf(page).press('Enter')
  const field = editFieldOf(page)
  await beginEdit(page)
  await field.fill('See you at sev')
  await section(page, 'Messages')
  await page.getByRole('heading', { name: 'Messages', exact: true }).waitFor()
  await openChat(page, 'Left edit')
  await beginEdit(page)
  expect(await field.inputValue()).toBe('See you at sev')
  // An edit that was given up begins anew.
  await field.press('Escape')
  await beginEdit(page)
  expect(await field.inputValue()).toBe('See you at six')
  expect(harness.complaints).toEqual([])
})

test('a late answer to an edit or a reply does not erase what was typed since', async () => {
  const id = await createChat('Late answers')
  await harness.service.admin.writeAsContact(id, { from: '5511900000002', text: 'Another' })
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`)
  await fieldOf(page).fill('See you at six')
  await fieldOf(page).press('Enter')
  /** Holds back the answer to this call. @returns lets it through */
  const holdBack = async (method: string, path: RegExp) => {
    const gate = Promise.withResolvers<void>()
    await page.route(path, async route => {
      if (route.request().method() === method) await gate.promise
      await route.continue()
    })
    return async () => {
      const answered = page.waitForResponse(response => path.test(response.url()))
      gate.resolve()
      await answered
      await page.evaluate(() => new Promise(drawn => setTimeout(drawn, 200)))
      await page.unrouteAll({ behavior: 'wait' })
    }
  }
  const field = editFieldOf(page)
  await beginEdit(page)
  await field.fill('See you at seven')
  const answerEdit = await holdBack('PATCH', /\/messages\/msg_\w+$/)
  await field.press('Enter')
  await page.locator('a[data-chat="5511900000002"]').click()
  await page.locator(`a[data-chat="${ANA}"]`).click()
  await beginEdit(page)
  await field.fill('See you at seven or ei')
  await answerEdit()
  expect(await field.inputValue()).toBe('See you at seven or ei')

  await section(page, 'Phone')
  const reply = page.getByPlaceholder('Write as this contact…')
  const open = (contact: string) => page.locator(`a[href$="with=${contact}"]`).click()
  await open(ANA)
  await reply.fill('First reply')
  const answerReply = await holdBack('POST', /\/sandbox\/incoming$/)
  await reply.press('Enter')
  await open('5511900000002')
  await open(ANA)
  await reply.fill('Second rep')
  await answerReply()
  expect(await reply.inputValue()).toBe('Second rep')
  expect(harness.complaints).toEqual([])
})

/** The panel may notice the end by itself, before the click. */
async function endSession(page: Page): Promise<void> {
  await page.context().clearCookies()
  const settings = page.getByRole('link', { name: 'Settings', exact: true }).first()
  await settings.click({ timeout: 5_000 }).catch(() => undefined)
  await page.getByText('Your session has ended').waitFor()
}

test('after a session has ended, the same person finds the unsent text, and another person does not', async () => {
  await createChat('Ended session')
  const page = await openAs(harness, 'ana@example.com', 'operator', PASSWORD)
  await openChat(page, 'Ended session')
  await fieldOf(page).fill('only for my eyes')
  await endSession(page)
  await page.locator('input[type="password"]').fill(ADMIN_KEY)
  await page.keyboard.press('Enter')
  await openChat(page, 'Ended session')
  expect(await fieldOf(page).inputValue()).toBe('')
  await endSession(page)
  await page.getByLabel('Name').fill('ana@example.com')
  await page.locator('input[type="password"]').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await openChat(page, 'Ended session')
  expect(await fieldOf(page).inputValue()).toBe('only for my eyes')
  expect(harness.complaints).toEqual([])
})

test('after a session has ended, the same person still finds a token that is shown only once', async () => {
  const page = await openAs(harness, 'lia@example.com', 'owner', PASSWORD)
  await page.getByRole('button', { name: 'New instance' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Only token')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const copied = page.getByRole('button', { name: en.token.done })
  await copied.waitFor()
  await endSession(page)
  await page.getByLabel('Name').fill('lia@example.com')
  await page.locator('input[type="password"]').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Pombal, all instances' }).click()
  await page.getByRole('row').filter({ hasText: 'Only token' }).getByRole('link').first().click()
  await copied.waitFor()
})

test('a text and a failed send stay in a conversation whose number becomes known', async () => {
  const id = await createChat('Number unknown')
  const lid = '123456789012345@lid'
  let number = lid
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  await page.route(/\/chats\?/, async route => {
    const response = await route.fetch({
      url: route
        .request()
        .url()
        .replace(/search=[^&]*/, ''),
    })
    const { data } = (await response.json()) as { data: object[] }
    await route.fulfill({
      response,
      json: { data: [{ ...data[0], chat: number, lid, name: 'Lia' }], nextCursor: null },
    })
  })
  const bodies: { to: string; idempotencyKey: string }[] = []
  const gate = Promise.withResolvers<void>()
  await page.route(/\/messages$/, async route => {
    if (route.request().method() !== 'POST') return route.continue()
    bodies.push(route.request().postDataJSON())
    await gate.promise
    await route.fulfill({ status: 502, body: '' })
  })
  const field = page.getByRole('textbox', { name: en.inbox.text('Lia') })
  const becomeKnown = async () => {
    number = ANA
    await harness.service.admin.writeAsContact(id, { from: ANA, text: 'Something happens' })
    await page.getByRole('heading', { name: 'Lia' }).locator('..').getByText(`+${ANA}`).waitFor()
  }
  await page.goto(`${harness.url}/instances/${id}/inbox?chat=${lid}`)
  await field.fill('written before')
  await field.press('Enter')
  await until('the call', () => bodies.length === 1)
  await becomeKnown()
  expect(await field.inputValue()).toBe('written before')
  gate.resolve()
  await page.getByText(en.send.unanswered).waitFor()
  await page.locator(`a[data-chat="${ANA}"]`).click()
  await page.getByText(en.send.unanswered).waitFor()
  await field.press('Enter')
  await until('the repeated call', () => bodies.length === 2)
  expect(bodies[1]).toEqual(bodies[0])
  await page.unrouteAll({ behavior: 'wait' })
  await until('the browser to report both answers', () => harness.complaints.length >= 2)
  expect(harness.complaints.filter(line => !/status of 502/.test(line))).toEqual([])
  harness.complaints.length = 0
})

test('when another account signs in in a second tab, the first tab shows its panel, without the unsent text', async () => {
  const id = await createChat('Two tabs')
  const first = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`)
  await fieldOf(first).fill('only for my eyes')
  const { pathname, hash } = new URL(harness.url + (await invite(harness, 'vera@example.com', 'viewer')))
  const second = await first.context().newPage()
  // The same account: the first tab keeps its text.
  await second.goto(`${harness.url}/sign-in`)
  await second.locator('input[type="password"]').fill(ADMIN_KEY)
  await second.keyboard.press('Enter')
  await second.getByRole('heading', { name: 'Instances' }).waitFor()
  expect(await fieldOf(first).inputValue()).toBe('only for my eyes')

  await second.goto(harness.url + pathname + hash)
  await second.locator('input[type="password"]').fill(PASSWORD)
  await second.getByRole('button', { name: 'Set the password and sign in' }).click()
  await second.getByRole('heading', { name: 'Instances' }).waitFor()
  await first.getByText(en.inbox.readOnly).waitFor()
  expect(await fieldOf(first).count()).toBe(0)
  expect(harness.complaints).toEqual([])
})

test('a form that was left during an upload says that the file is missing', async () => {
  const { id } = await harness.service.admin.createConnected('Left during an upload')
  const page = await harness.openSignedIn(`/instances/${id}`)
  const upload = Promise.withResolvers<void>()
  await page.route(/\/media(\?|$)/, async route => {
    if (route.request().method() === 'POST') await upload.promise
    await route.continue().catch(() => undefined)
  })
  await page
    .locator('input[type="file"]')
    .setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('A note') })
  await page.getByText('Uploading note.txt').first().waitFor()
  await section(page, 'Messages')
  await page.getByRole('heading', { name: 'Messages', exact: true }).waitFor()
  await section(page, 'Overview')
  await page.getByText(en.files.interrupted).waitFor()
  upload.resolve()
  await page.getByRole('button', { name: en.files.fromUrl }).click()
  await page.getByText(en.files.interrupted).waitFor({ state: 'detached' })
  await page.unrouteAll({ behavior: 'wait' })
})

test('the form on the overview keeps its text and file while the number is not connected', async () => {
  const { id } = await harness.service.admin.createConnected('Interrupted')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page
    .locator('input[type="file"]')
    .setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('A note') })
  await page.getByText('note.txt').waitFor()
  await page.getByRole('button', { name: 'Remove note.txt from the message' }).waitFor()
  await page.getByLabel('Caption').fill('the note that I promised')
  await harness.service.admin.logout(id)
  await page.getByText('The number was unlinked, and queued messages have failed.').waitFor()
  expect(await page.getByLabel('Caption').inputValue()).toBe('the note that I promised')
  expect(await page.getByText('note.txt').count()).toBe(1)
  const send = page.getByRole('button', { name: 'Send', exact: true })
  expect(await send.isDisabled()).toBe(true)
  await page.getByRole('button', { name: 'Link again' }).click()
  await until('an enabled form', () => send.isEnabled())
  await send.click()
  await page.waitForURL(/messages\?open=/)
  const [sent] = await harness.service.admin.listMessages(id)
  expect(sent).toMatchObject({ text: 'the note that I promised', media: { filename: 'note.txt' } })
  expect(harness.complaints).toEqual([])
})

test('switching the instance with the search or "Back" shows nothing of the other one: no text, no numbers', async () => {
  const { admin } = harness.service
  const first = await admin.createConnected('Bakery one')
  const second = await admin.createConnected('Bakery two')
  await harness.service.instance(first.id, first.token).send(ANA, 'Counted')
  const page = await harness.openSignedIn(`/instances/${first.id}`)
  await page.getByText('1 message', { exact: true }).first().waitFor()
  await page.getByLabel('To', { exact: true }).fill('5511900000001')
  await page.getByLabel('Text', { exact: true }).fill('for customers of the first one')
  const statistics = Promise.withResolvers<void>()
  await page.route(`**/instances/${second.id}/statistics*`, async route => {
    await statistics.promise
    await route.continue()
  })
  await page.keyboard.press('Control+k')
  const field = page.getByRole('combobox', { name: /message ID/ })
  await field.fill('Bakery two')
  await page.getByRole('option', { name: /Bakery two/ }).waitFor()
  await field.press('Enter')
  await page.getByRole('heading', { name: 'Bakery two' }).waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await page.getByLabel('Text', { exact: true }).inputValue()).toBe(en.send.defaultText)
  expect(await page.getByLabel('To', { exact: true }).inputValue()).toBe(ANA)
  expect(await page.getByText('1 message', { exact: true }).count()).toBe(0)
  statistics.resolve()
  await page.getByText(en.tools.chart.none).first().waitFor()

  await page.getByLabel('Text', { exact: true }).fill('for customers of the second one')
  await page.goBack()
  await page.getByRole('heading', { name: 'Bakery one' }).waitFor()
  expect(await page.getByLabel('Text', { exact: true }).inputValue()).toBe('for customers of the first one')
  expect(harness.complaints).toEqual([])
})
