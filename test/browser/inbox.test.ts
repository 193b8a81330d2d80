import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
