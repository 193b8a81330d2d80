import { readFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { en } from '../../panel/src/i18n/en.ts'
import { ptBr } from '../../panel/src/i18n/pt-br.ts'
import { noteSecret } from '../logs/log-capture.ts'
import { type Network, startNetwork } from '../network.ts'
import { LocalProxy } from '../proxies/local-proxy.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const LOGIN = { user: 'shop', password: 'a-password-of-a-proxy' }

let harness: PanelHarness
let network: Network
beforeAll(async () => {
  noteSecret(LOGIN.password)
  network = await startNetwork()
  harness = await PanelHarness.start({ WHATSAPP_URL: network.url })
})
afterAll(async () => {
  await harness?.dispose()
  await network?.close()
})
afterEach(() => harness.closePages())

test('a proxy is set in the settings once it works, shown without its password, and removed', async () => {
  const { admin } = harness.service
  const { id } = await admin.createInstance('whatsapp')
  await using proxy = await LocalProxy.listen({ kind: 'socks5', login: LOGIN })
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  const url = page.getByLabel('Address of the proxy')
  const save = page.getByRole('button', { name: 'Test and use' })
  await url.fill(proxy.url({ ...LOGIN, password: 'wrong' }))
  await save.click()
  await page.getByText('The proxy refuses the user name or the password.').waitFor()
  expect(await admin.proxy(id)).toEqual({ url: null })
  await url.fill(proxy.url())
  const answer = Promise.withResolvers<void>()
  await page.route(/\/proxy$/, async route => {
    await answer.promise
    await route.continue()
  })
  await save.click()
  await url.fill('http://typed-meanwhile')
  answer.resolve()
  await page.getByText('The proxy works.').waitFor()
  expect(await url.inputValue()).toBe('http://typed-meanwhile')
  await page.unrouteAll({ behavior: 'wait' })
  await url.fill(proxy.url())
  await save.click()
  await until('an empty field', async () => (await url.inputValue()) === '')
  const shown = `socks5://shop@127.0.0.1:${proxy.port}`
  await page.getByText(shown).waitFor()
  expect(await admin.proxy(id)).toEqual({ url: shown })
  expect(await page.content()).not.toContain(LOGIN.password)

  await admin.connect(id)
  await network.scanQr(await until('a QR code', async () => (await admin.connection(id)).qr))
  await admin.untilState(id, 'connected')
  await page.goto(`${harness.url}/instances/${id}`)
  await page.getByText('Health').first().waitFor()
  await page.getByText(shown).waitFor()

  await page.goto(`${harness.url}/instances/${id}/settings`)
  await page.getByRole('button', { name: 'Use no proxy' }).click()
  await page.getByText('The instance connects without a proxy.').waitFor()
  expect(await admin.proxy(id)).toEqual({ url: null })
  expect(harness.complaints).toEqual([])
})

test('a proxy can be set in Portuguese as well, and a sandbox instance shows no proxy', async () => {
  const { admin } = harness.service
  const { id } = await admin.createInstance('whatsapp')
  const page = await harness.openSignedIn(`/instances/${id}/settings`, { locale: 'pt-BR' })
  await page.getByLabel('Endereço do proxy').fill('http://127.0.0.1:1')
  await page.getByRole('button', { name: 'Testar e usar' }).click()
  await page.getByText('O proxy não responde.').waitFor()
  const sandbox = await admin.createInstance('sandbox')
  await page.goto(`${harness.url}/instances/${sandbox.id}/settings`)
  await page.getByText('Ritmo').waitFor()
  expect(await page.getByText('Endereço do proxy').count()).toBe(0)
})

test('calls are rejected with a text that is set in the settings, in either language', async () => {
  const { admin } = harness.service
  const { id } = await admin.createInstance('sandbox')
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  const card = page.locator('section', { hasText: 'What happens if somebody calls the number.' })
  await card.getByRole('switch').click()
  await page.getByLabel('Text to the person who called').fill('Please write to us.')
  await card.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved. It applies to the next call.').waitFor()
  expect(await admin.calls(id)).toEqual({ reject: true, text: 'Please write to us.' })

  const portuguese = await harness.openSignedIn(`/instances/${id}/settings`, { locale: 'pt-BR' })
  const text = portuguese.getByLabel('Texto para quem liga')
  await text.waitFor()
  expect(await text.inputValue()).toBe('Please write to us.')
  const cartao = portuguese.locator('section', { hasText: 'O que acontece se alguém ligar' })
  await cartao.getByRole('switch').click()
  await cartao.getByRole('button', { name: 'Salvar' }).click()
  await portuguese.getByText('Salvo. Vale a partir da próxima ligação.').waitFor()
  expect(await admin.calls(id)).toEqual({ reject: false, text: null })
  expect(harness.complaints).toEqual([])
})

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
  await page.getByText(words.person.erased(`+${contact}`, 1)).waitFor()
  expect(JSON.stringify(await received())).not.toContain(contact)
})

test('when two people change the same settings, each save keeps what the other one has changed', async () => {
  const { admin } = harness.service
  const { id } = await admin.createInstance('sandbox', 'Before')
  const page = await harness.openSignedIn()
  await page.addInitScript(() => {
    const Original = window.EventSource
    window.EventSource = class extends Original {
      constructor(url: string) {
        super(url)
        document.addEventListener('refresh-now', () => this.dispatchEvent(new Event('refresh')))
      }
    }
  })
  const refresh = () => page.evaluate(() => document.dispatchEvent(new Event('refresh-now')))
  await page.goto(`${harness.url}/instances/${id}/settings`)
  const name = page.getByLabel(en.instanceSettings.rename)
  const perMinute = page.getByLabel(en.pace.perMinute)
  const perDay = page.getByLabel(en.pace.perDay)
  const card = page.locator('section', { hasText: en.calls.hint })
  await name.fill('Half a na')
  await perMinute.fill('7')
  const change = async (path: string, method: string, body: object) => {
    const headers = { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' }
    const url = `${harness.url}/admin/v1/instances/${id}${path}`
    const answer = await fetch(url, { method, headers, body: JSON.stringify(body) })
    expect(answer.ok).toBe(true)
  }
  await change('', 'PATCH', { name: 'Of somebody else' })
  const pace = { perMinute: 3, newRecipientsPerDay: 5, quietHours: null, timeZone: 'UTC', typing: false }
  await change('/pace', 'PUT', pace)
  await change('/calls', 'PUT', { reject: true, text: 'Of somebody else' })
  await refresh()
  await refresh()
  await until('the calls', () => card.getByRole('switch').isChecked())
  await page.getByRole('heading', { name: 'Of somebody else' }).waitFor()
  expect(await name.inputValue()).toBe('Half a na')
  expect([await perMinute.inputValue(), await perDay.inputValue()]).toEqual(['7', '5'])

  // The page does not know of this change yet. The person types on while the answer is awaited.
  await change('/pace', 'PUT', { ...pace, newRecipientsPerDay: 6, typing: true })
  const answer = Promise.withResolvers<void>()
  await page.route(/\/pace$/, async route => {
    if (route.request().method() === 'PUT') await answer.promise
    await route.continue()
  })
  const saving = page.waitForRequest(request => request.method() === 'PUT')
  const save = page.locator('section', { hasText: en.pace.hint }).getByRole('button', { name: en.common.save })
  await save.click()
  expect((await saving).postDataJSON()).toEqual({ ...pace, perMinute: 7, newRecipientsPerDay: 6, typing: true })
  await perMinute.fill('3')
  answer.resolve()
  await page.getByText(en.pace.saved).waitFor()
  await until('the saved field', async () => (await perDay.inputValue()) === '6')
  expect(await perMinute.inputValue()).toBe('3')

  // A restored field shows the newest data again.
  await perMinute.fill('7')
  await change('/pace', 'PUT', { ...pace, perMinute: 8 })
  await refresh()
  await until('the pace', async () => (await perMinute.inputValue()) === '8')
  await page.unrouteAll({ behavior: 'wait' })
  expect(harness.complaints).toEqual([])
})
