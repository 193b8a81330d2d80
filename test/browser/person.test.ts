import { readFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { en } from '../../panel/src/i18n/en.ts'
import { ptBr } from '../../panel/src/i18n/pt-br.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(() => harness?.dispose())
afterEach(() => harness.closePages())

test.each([
  { locale: 'en-GB', words: en, contact: '5511987650001' },
  { locale: 'pt-BR', words: ptBr, contact: '5511987650002' },
])('$locale: an owner exports and erases what is stored of a person', async ({ locale, words, contact }) => {
  const { id } = await harness.service.admin.createConnected('Person')
  await harness.service.admin.writeAsContact(id, { from: contact, text: 'a secret of theirs' })
  const received = async () => (await harness.service.admin.listEvents(id)).find(({ messageId }) => messageId !== null)
  await until('the message', received)
  const page = await harness.openSignedIn(`/instances/${id}/settings`, { locale, reducedMotion: 'reduce' })
  const field = page.getByLabel(words.person.contact)
  const exporting = page.getByText(words.person.export, { exact: true })
  const erasing = page.getByRole('button', { name: words.person.erase })
  await field.fill('ana')
  await page.getByText(words.person.notAPerson).waitFor()
  expect(await erasing.isDisabled()).toBe(true)
  await field.fill(`+${contact}`)
  const [download] = await Promise.all([page.waitForEvent('download'), exporting.click()])
  expect(download.suggestedFilename()).toBe(`contact-${contact}.zip`)
  const zip = await fromBufferPromise(await readFile(await download.path()))
  expect(zip.entryCount).toBe(5)

  await erasing.click()
  const dialog = page.getByRole('dialog', { name: words.person.eraseTitle })
  await dialog.getByRole('textbox').fill(contact)
  await dialog.getByRole('button', { name: words.person.eraseAction }).click()
  await page.getByText(words.person.erased(1)).waitFor()
  expect(JSON.stringify(await received())).not.toContain(contact)
})
