import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { ptBr } from '../../panel/src/i18n/pt-br.ts'
import { type Network, startNetwork } from '../network.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const ANA = '5511987670001'

let harness: PanelHarness
let network: Network
let id: string
let phone: string
beforeAll(async () => {
  network = await startNetwork()
  harness = await PanelHarness.start({ WHATSAPP_URL: network.url })
  const { admin } = harness.service
  id = (await admin.createInstance('whatsapp', 'Shop')).id
  await admin.connect(id)
  phone = (await network.scanQr(await until('a QR code', async () => (await admin.connection(id)).qr))).phone
  await admin.untilState(id, 'connected')
})
afterAll(async () => {
  await harness?.dispose()
  await network?.close()
})
afterEach(() => harness.closePages())

async function seriousProblems(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }).axe
    const { violations } = await axe.run()
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
  })
}

interface Violation {
  id: string
  impact: string
  nodes: { target: string[] }[]
}

/** What the phone of a number shows. */
function onPhone(number: string, text: string) {
  return until(`“${text}” on the phone`, async () =>
    (await network.inbox(number)).find(message => message.text === text),
  )
}

test.each([
  { locale: 'en-GB', words: en, subject: 'Friday football' },
  { locale: 'pt-BR', words: ptBr, subject: 'Futebol de sexta' },
])(
  '$locale: a group is found by its name, written to, and answered with a quote; a reaction and an edit are seen',
  async ({ locale, words, subject }) => {
    const group = await network.createGroup({ by: ANA, subject, members: [phone] })
    const page = await harness.openSignedIn(`/instances/${id}/inbox`, { locale, reducedMotion: 'reduce' })
    await page.getByPlaceholder(words.inbox.searchHint).fill(subject.slice(0, 8).toUpperCase())
    await page.getByRole('link', { name: subject }).click()
    const field = page.getByRole('textbox', { name: words.inbox.text(subject) })
    await field.fill(`${locale} who plays?`)
    expect(await seriousProblems(page)).toEqual([])
    await field.press('Enter')
    const sent = await onPhone(ANA, `${locale} who plays?`)
    expect(sent.group).toBe(group)

    // The other side answers, reacts and corrects itself.
    const answer = await network.writeAs({
      from: ANA,
      to: phone,
      group,
      name: 'Ana',
      text: `${locale} I pley`,
      quote: sent.id,
    })
    const log = page.getByRole('log')
    const line = (text: string) => log.getByRole('article').filter({ has: page.getByText(text, { exact: true }) })
    await line(`${locale} I pley`).getByText(`${locale} who plays?`).waitFor()
    await network.writeAs({
      from: ANA,
      to: phone,
      group,
      name: 'Ana',
      edit: { id: answer.id, text: `${locale} I play` },
    })
    await line(`${locale} I play`).getByText(words.inbox.edited).waitFor()
    await network.writeAs({ from: ANA, to: phone, group, name: 'Ana', reaction: { to: sent.id, emoji: '🎉' } })
    await line(`${locale} who plays?`).getByText(words.inbox.reactedBy('🎉', 'Ana')).waitFor({ state: 'attached' })

    await line(`${locale} I play`)
      .getByRole('button', { name: words.inbox.actions(`${locale} I play`) })
      .click()
    await page.getByRole('menuitem', { name: words.inbox.reply }).waitFor()
    expect(await seriousProblems(page)).toEqual([])
    await page.getByRole('menuitem', { name: words.inbox.reply }).click()
    await field.fill(`${locale} see you there`)
    await field.press('Enter')
    const quoting = await onPhone(ANA, `${locale} see you there`)
    expect(quoting.quoted).toBe(answer.id)
    await line(`${locale} see you there`).getByText(`${locale} I play`).waitFor()
    expect(harness.complaints).toEqual([])
  },
)

test('the keyboard alone reacts, edits, deletes and marks as read, on a screen of 390 pixels', async () => {
  const from = '5511987670002'
  const { id: asked } = await network.writeAs({ from, to: phone, name: 'Bruno', text: 'still open?' })
  const page = await harness.openSignedIn(`/instances/${id}/inbox`, { viewport: { width: 390, height: 844 } })
  const words = en.inbox
  const isWithin = () => page.evaluate(() => document.documentElement.scrollWidth <= 390)
  const chat = page.getByRole('link', { name: 'Bruno' })
  await chat.getByText(words.unread(1, false)).waitFor({ state: 'attached' })
  expect([await isWithin(), await seriousProblems(page)]).toEqual([true, []])
  await chat.press('Enter')
  const field = page.getByRole('textbox', { name: words.text('Bruno') })
  await page.locator('textarea:focus').waitFor()
  await chat.waitFor({ state: 'hidden' })
  expect([await isWithin(), await seriousProblems(page)]).toEqual([true, []])

  const choose = async (text: string, item: string) => {
    await page.getByRole('button', { name: words.actions(text) }).press('Enter')
    await page.getByRole('menuitem', { name: item }).press('Enter')
    await page.getByRole('menu').waitFor({ state: 'detached' })
  }
  await choose('still open?', words.react('👍'))
  await page.getByRole('log').getByText(words.reactedBy('👍', words.you)).waitFor({ state: 'attached' })
  await until('the reaction on the phone', async () => {
    return (await network.inbox(from)).some(({ details }) => details?.reactionMessage?.key.id === asked)
  })
  await page.getByRole('button', { name: words.markRead }).press('Enter')
  await page.getByRole('button', { name: words.markRead }).waitFor({ state: 'detached' })

  await field.fill('open until ten')
  await field.press('Enter')
  await onPhone(from, 'open until ten')
  await field.fill('until sixx')
  await field.press('Enter')
  const { id: sent } = await onPhone(from, 'until sixx')
  await choose('until sixx', words.edit)
  const edit = page.getByRole('textbox', { name: words.editingTitle })
  const refusal = { error: { code: 'invalid_request', message: 'Refused.' } }
  await page.route(/\/messages\/msg_/, route => route.fulfill({ status: 400, json: refusal }))
  await edit.fill('until')
  await edit.press('Enter')
  await page.getByRole('alert').filter({ hasText: 'Refused.' }).waitFor()
  await choose('open until ten', words.edit)
  await until('the text of the other message', async () => (await edit.inputValue()) === 'open until ten')
  expect(await page.getByRole('alert').count()).toBe(0)
  await page.unrouteAll({ behavior: 'wait' })
  await choose('until sixx', words.edit)
  await edit.fill('until six')
  await edit.press('Enter')
  await page.getByRole('log').getByText(words.edited, { exact: true }).waitFor()
  const onIt = async () => (await network.inbox(from)).find(message => message.id === sent)
  await until('the edit on the phone', async () => (await onIt())?.edited)
  await choose('until six', words.remove)
  await page.getByRole('dialog').getByText('until six', { exact: true }).waitFor()
  await page.getByRole('dialog').getByRole('button', { name: words.remove }).press('Enter')
  await page.getByRole('log').getByText(words.deleted).waitFor()
  await until('the deletion on the phone', async () => (await onIt())?.deleted)
  await page.getByRole('button', { name: words.back }).press('Enter')
  await page.locator(`a[data-chat="${from}"]:focus`).waitFor()
  expect(harness.complaints).toEqual([])
})

test('a viewer reads conversations and cannot write; a failure says what to do', async () => {
  const refused = '15005550004'
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${refused}`)
  const field = page.getByRole('textbox', { name: en.inbox.text(`+${refused}`) })
  await field.fill('anybody there?')
  await field.press('Enter')
  await page.getByText(en.failures.rejected_by_whatsapp).waitFor()
  await page.getByText(en.tools.failureSteps.rejected_by_whatsapp).waitFor()
  await page.goto(`${harness.url}/people`)
  await page.getByRole('button', { name: 'Invite a person' }).click()
  await page.getByLabel('Name to sign in with').fill('ana@example.com')
  await page.getByRole('radio', { name: 'Viewer' }).check()
  await page.getByRole('button', { name: 'Create the link' }).click()
  const { pathname, hash } = new URL(await page.getByRole('dialog').locator('code').innerText())
  const viewer = await harness.open(pathname + hash)
  await viewer.locator('input[type="password"]').fill('correct horse battery')
  await viewer.getByRole('button', { name: 'Set the password and sign in' }).click()
  await viewer.getByText('Shop').waitFor()
  await viewer.goto(`${harness.url}/instances/${id}/inbox?chat=${refused}`)
  await viewer.getByText(en.inbox.readOnly).waitFor()
  await viewer.getByRole('button', { name: en.inbox.actions('anybody there?') }).click()
  await viewer.getByRole('menuitem', { name: en.inbox.copyId }).waitFor()
  expect(await viewer.getByRole('menuitem', { name: en.inbox.reply }).count()).toBe(0)
  expect(await viewer.getByRole('textbox', { name: en.inbox.text(`+${refused}`) }).count()).toBe(0)
  expect(await seriousProblems(viewer)).toEqual([])
})

test('the form that sends a message finds a group by its name', async () => {
  const group = await network.createGroup({ by: ANA, subject: 'Condomínio Sol', members: [phone] })
  const page = await harness.openSignedIn(`/instances/${id}/messages`, { reducedMotion: 'reduce' })
  await page.getByRole('button', { name: en.messages.send }).first().click()
  const form = page.getByRole('dialog', { name: en.send.title })
  const to = form.getByRole('combobox', { name: en.send.to })
  await to.fill('condominio')
  await page.getByRole('option', { name: 'Condomínio Sol' }).waitFor()
  expect(await seriousProblems(page)).toEqual([])
  await to.press('ArrowDown')
  await to.press('Enter')
  expect(await to.inputValue()).toBe(group)
  await form.getByText('Condomínio Sol').waitFor()
  await form.getByLabel(en.send.text).fill('to the group by name')
  await form.getByRole('button', { name: en.send.action, exact: true }).click()
  expect((await onPhone(ANA, 'to the group by name')).group).toBe(group)
})

test('older messages are loaded by scrolling, and a message that is found by its text is shown in its conversation', async () => {
  const from = '5511987670003'
  await network.writeAs({ from, to: phone, name: 'Carla', text: 'the very first words' })
  await network.misbehave({ kind: 'write', from, to: phone, text: 'number ', count: 130 })
  const page = await harness.openSignedIn(`/instances/${id}/inbox`, { reducedMotion: 'reduce' })
  await page.getByRole('link', { name: 'Carla' }).getByText('100+').waitFor()
  await page.getByRole('link', { name: 'Carla' }).click()
  const log = page.getByRole('log')
  const first = log.getByText('the very first words', { exact: true })
  await log.getByRole('article').first().waitFor()
  expect(await first.count()).toBe(0)
  await until('the first message', async () => {
    await log.evaluate(box => box.scrollTo({ top: -box.scrollHeight }))
    return (await first.count()) === 1
  })
  await log.getByRole('button', { name: en.inbox.actions('the very first words') }).click()
  await page.getByRole('menuitem', { name: en.inbox.reply }).click()
  const field = page.getByRole('textbox', { name: en.inbox.text('Carla') })
  await field.fill('an answer')
  await field.press('Enter')
  const answer = log.getByText('an answer', { exact: true })
  await answer.waitFor()
  await until('the answer on the screen', () =>
    answer.evaluate(line => line.getBoundingClientRect().top < window.innerHeight),
  )
  await page.goto(`${harness.url}/instances/${id}/inbox`)
  await page.getByPlaceholder(en.inbox.searchHint).fill('very FIRST')
  await page.getByRole('link', { name: 'the very first words' }).click()
  await page.locator('article:focus').getByText('the very first words').waitFor()
  expect(harness.complaints).toEqual([])
})

test('an older message that changed while it was off screen is shown as it is now when it is scrolled to', async () => {
  const from = '5511987670004'
  const { id: edited } = await network.writeAs({ from, to: phone, name: 'Davi', text: 'see you at siz' })
  await network.misbehave({ kind: 'write', from, to: phone, text: 'number ', count: 180 })
  const page = await harness.openSignedIn('/settings', { reducedMotion: 'reduce' })
  await page.addInitScript(() => {
    // Every 20 s the service asks the panel to read everything again.
    const listen = EventSource.prototype.addEventListener
    EventSource.prototype.addEventListener = function (type: string, ...rest: [EventListener]) {
      if (type !== 'refresh') listen.call(this, type, ...rest)
    }
  })
  await page.goto(`${harness.url}/instances/${id}/inbox`)
  await page.getByRole('link', { name: 'Davi' }).getByText('100+').waitFor()
  await page.getByRole('link', { name: 'Davi' }).click()
  const log = page.getByRole('log')
  const scrollTo = (place: 'top' | 'end') =>
    log.evaluate((box, top) => box.scrollTo({ top: top ? -box.scrollHeight : 0 }), place === 'top')
  await until('the first message', async () => {
    await scrollTo('top')
    return (await log.getByText('see you at siz', { exact: true }).count()) === 1
  })
  await scrollTo('end')
  await network.writeAs({ from, to: phone, name: 'Davi', edit: { id: edited, text: 'see you at six' } })
  await network.writeAs({ from, to: phone, name: 'Davi', text: 'the newest' })
  await log.getByText('the newest', { exact: true }).waitFor()
  await scrollTo('top')
  await log.getByText('see you at six', { exact: true }).waitFor()
  expect(harness.complaints).toEqual([])
})

test('a text has the direction of its language, and a name cannot turn around what follows it', async () => {
  const subject = 'Book club'
  const group = await network.createGroup({ by: ANA, subject, members: [phone] })
  await network.writeAs({ from: ANA, to: phone, group, name: 'Eva \u202E!', text: 'שלום לכולם' })
  const page = await harness.openSignedIn(`/instances/${id}/inbox`, { reducedMotion: 'reduce' })
  const entry = page.getByRole('link', { name: subject })
  await entry.getByText('שלום לכולם').waitFor()
  const [author, preview] = await Promise.all([0, 1].map(index => entry.locator('bdi').nth(index).boundingBox()))
  expect(author!.x + author!.width).toBeLessThan(preview!.x)
  await entry.click()
  const text = page.getByRole('log').getByText('שלום לכולם')
  expect(await text.evaluate(element => getComputedStyle(element).direction)).toBe('rtl')
  const field = page.getByRole('textbox', { name: en.inbox.text(subject) })
  expect(await field.evaluate(element => getComputedStyle(element).unicodeBidi)).toBe('plaintext')
  expect(harness.complaints).toEqual([])
})

test('of a long text the conversation shows the beginning, and the rest when it is asked for', async () => {
  const text = `${'word '.repeat(4_000)}the end`
  const from = '5511987670006'
  await network.writeAs({ from, to: phone, name: 'Fabio', text })
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${from}`)
  const line = page.getByRole('article')
  await line.getByText(/^word/).waitFor()
  expect(await line.getByText('the end').count()).toBe(0)
  await line.getByRole('button', { name: en.inbox.wholeText }).click()
  await line.getByText('the end').waitFor()
  expect(await line.getByRole('button', { name: en.inbox.wholeText }).count()).toBe(0)
  expect(harness.complaints).toEqual([])
})

test('the search for a very old message stops after 20 pages, and goes on when it is asked to', async () => {
  const from = '5511987670007'
  await network.writeAs({ from, to: phone, name: 'Gil', text: 'the very first words' })
  await network.misbehave({ kind: 'write', from, to: phone, text: 'number ', count: 110 })
  const page = await harness.openSignedIn(`/instances/${id}/inbox`, { reducedMotion: 'reduce' })
  await page.getByRole('link', { name: 'Gil' }).getByText('100+').waitFor()
  let pages = 0
  let next: string | null = null
  // 25 empty pages, as if their messages had been erased, before the page with the first message.
  await page.route(/\/conversation\?.*cursor=/, route => {
    const url = new URL(route.request().url())
    next ??= url.searchParams.get('cursor')
    pages += 1
    if (pages <= 25) return route.fulfill({ json: { data: [], nextCursor: `page-${pages}` } })
    url.searchParams.set('cursor', next!)
    return route.continue({ url: url.href })
  })
  await page.getByPlaceholder(en.inbox.searchHint).fill('very first')
  await page.locator('a[href*="message="]').filter({ hasText: 'Gil' }).click()
  await page.getByText(en.inbox.further).waitFor()
  expect(pages).toBe(20)
  await page.getByRole('button', { name: en.inbox.searchFurther }).click()
  await page.locator('article:focus').getByText('the very first words').waitFor()
  await page.getByText(en.inbox.further).waitFor({ state: 'detached' })
  expect(harness.complaints).toEqual([])
})
