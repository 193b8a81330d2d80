import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Order } from '@pombal/simulator'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { noteSecret } from '../logs/log-capture.ts'
import { type Network, startNetwork } from '../network.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
let network: Network
beforeAll(async () => {
  network = await startNetwork()
  harness = await PanelHarness.start({ WHATSAPP_URL: network.url })
})
afterAll(async () => {
  await harness.dispose()
  await network.close()
})
afterEach(() => harness.closePages())

test('the QR code on the page links the number that scans it', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Shop')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByText('Point the phone at this code').waitFor()
  await page.getByRole('button', { name: 'Link a number' }).click()
  await page.getByTestId('qr').waitFor()
  await page.getByText(/A new code appears in \d+ s/).waitFor()
  const qr = await until('a code', async () => (await harness.service.admin.connection(id)).qr)
  await network.scanQr(qr)
  await page.getByText('Messages are sent and received.').waitFor()
  expect(await page.getByTestId('qr').count()).toBe(0)
  expect(harness.complaints).toEqual([])
})

test('while the state cannot be read, a typed number and a linking link that is shown once stay', async () => {
  const { admin } = harness.service
  const { id } = await admin.createInstance('whatsapp', 'Interrupted linking')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByText(en.linking.byCode, { exact: true }).click()
  const number = page.getByLabel(en.linking.numberLabel)
  await number.fill('5511987')
  await page.getByRole('button', { name: en.links.create }).click()
  await page.getByRole('button', { name: en.people.createLink }).click()
  const link = page.getByRole('dialog').locator('code')
  noteSecret(new URL(await link.innerText()).hash.slice(1))
  await page.route(/\/connection$/, route =>
    route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'Broken.' } } }),
  )
  await admin.rename(id, 'Interrupted linking, renamed')
  const unlinked = en.connection.states.unlinked.name
  await page.getByText(en.connection.lastKnown(unlinked)).waitFor()
  expect(await link.isVisible()).toBe(true)
  expect(await number.inputValue()).toBe('5511987')
  await page.keyboard.press('Escape')
  await link.waitFor({ state: 'detached' })
  await page.unrouteAll({ behavior: 'wait' })
  await page.getByText(en.connection.lastKnown(unlinked)).waitFor({ state: 'detached' })
  // The browser's own line about the status 500.
  harness.complaints.length = 0
})

test('a new instance for a real number shows its QR code immediately', async () => {
  const page = await harness.openSignedIn('/')
  await page.getByRole('button', { name: 'New instance' }).click()
  await page.getByText('to programs that use the token').waitFor()
  await page.getByLabel('Name', { exact: true }).fill('At once')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByTestId('qr').waitFor()
})

test('without a network, the page says that there is no code yet, why, and when it tries again', async () => {
  await using offline = await PanelHarness.start({ WHATSAPP_URL: 'ws://127.0.0.1:9' })
  const { id } = await offline.service.admin.createInstance('whatsapp', 'Offline')
  const page = await offline.openSignedIn('/')
  // The clock of the browser is wrong.
  const time = Date.now() + 600_000
  await page.clock.install({ time })
  await page.goto(`${offline.url}/instances/${id}`)
  await page.getByRole('button', { name: 'Link a number' }).click()
  await page.getByText('has not supplied a code to scan yet').waitFor()
  await page.getByText('WhatsApp could not be reached').waitFor()
  await page.getByText('Next attempt').waitFor()
  expect(await page.getByText('Waiting for the phone').count()).toBe(0)
  expect(await page.getByText('Asking WhatsApp for a code…').count()).toBe(0)
  // After several attempts it waits for a person.
  await page.getByRole('button', { name: 'Link a number' }).waitFor()
  await page.getByText('WhatsApp could not be reached').waitFor()

  const answer = await fetch(`${offline.url}/admin/v1/instances/${id}/links`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${offline.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ expiresInMinutes: 60 }),
  })
  const link = new URL(((await answer.json()) as { data: { url: string } }).data.url, offline.url)
  noteSecret(link.hash.slice(1))
  const person = await offline.open('/sign-in')
  await person.clock.install({ time })
  await person.goto(offline.url + link.pathname + link.hash)
  await person.getByRole('button', { name: en.linkPage.begin }).click()
  await person.getByText(en.linkPage.askSender).waitFor()
  await person.getByRole('button', { name: en.connection.link }).waitFor()
  expect(await person.getByText(en.linking.waitingForQr).count()).toBe(0)
  expect(offline.complaints).toEqual([])
})

test('a pairing code is shown for the number typed in, and links it once it is typed on the phone', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'By code')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByText('Pairing code').click()
  await page.getByLabel('Your number').fill('12')
  await page.getByRole('button', { name: 'Get a pairing code' }).click()
  await page.getByText('Enter 7 to 15 digits, with the country code').waitFor()
  await page.getByLabel('Your number').fill('+55 11 98765-4321')
  await page.getByRole('button', { name: 'Get a pairing code' }).click()
  const shown = await page.getByText(/^[A-Z0-9]{4}-[A-Z0-9]{4}$/).textContent()
  await network.typePairingCode(shown!.replace('-', ''), '5511987654321')
  await page.getByText('Messages are sent and received.').waitFor()
})

test('each new QR code is drawn with its countdown; after the last one expires, one button requests another', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-codes-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'ended')
  const nodeOptions = ['--import', new URL('./expire-codes.ts', import.meta.url).href]
  await using slow = await PanelHarness.start({ WHATSAPP_URL: network.url, CODES_ENDED: file }, nodeOptions)
  await network.misbehave({ kind: 'qr_codes', count: 2 })
  const { id } = await slow.service.admin.createInstance('whatsapp', 'Slow')
  const page = await slow.openSignedIn('/')
  await page.clock.install()
  await page.goto(`${slow.url}/instances/${id}`)
  const drawn = page.getByTestId('qr').locator('path')
  const codeOnShow = async () => (await slow.service.admin.connection(id)).qr
  /** Waits until the page draws another code. */
  const drawnAnew = (before: string | null) =>
    until('another code', async () => {
      const shape = await drawn.getAttribute('d')
      return shape !== before && shape
    })
  const secondsLeft = async () =>
    Number(/\d+/.exec((await page.getByText(/A new code appears in/).textContent())!)?.[0])

  await page.getByRole('button', { name: 'Link a number' }).click()
  const first = await drawnAnew(null)
  expect(await secondsLeft()).toBeGreaterThan(20)
  expect(await secondsLeft()).toBeLessThanOrEqual(60)
  const firstCode = await codeOnShow()

  appendFileSync(file, '.')
  await page.clock.fastForward(60_000)
  const second = await drawnAnew(first)
  expect(await codeOnShow()).not.toBe(firstCode)
  await page.getByText(/A new code appears in 1?\d s|A new code appears in 20 s/).waitFor()

  appendFileSync(file, '.')
  await page.clock.fastForward(20_000)
  await page.getByText('The code has expired').waitFor()
  await page.getByText('Nobody scanned it in time').waitFor()
  expect(await drawn.count()).toBe(0)

  await page.getByRole('button', { name: 'Show a new code' }).click()
  await drawnAnew(second)
  await network.scanQr(await until('a code', codeOnShow))
  await page.getByText('Messages are sent and received.').waitFor()
  expect(slow.complaints).toEqual([])
  await network.misbehave({ kind: 'clear' })
})

test.each<[string, string, (phone: string) => Order[]]>([
  ['banned', 'WhatsApp has banned or restricted this number', refusedWith('403')],
  ['version_refused', 'WhatsApp refuses the client version', refusedWith('405')],
  [
    'replaced',
    'Another program opened the same session',
    account => [{ kind: 'stream_error', account, conflict: 'replaced' }],
  ],
])('a stop because of %s is shown with its remedy, and one button tries again', async (_, words, orders) => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Stopped')
  await harness.service.admin.connect(id)
  const { phone } = await network.scanQr(
    await until('a code', async () => (await harness.service.admin.connection(id)).qr),
  )
  await harness.service.admin.untilState(id, 'connected')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByText('Messages are sent and received.').waitFor()
  for (const order of orders(phone)) await network.misbehave(order)
  await page.getByText(words).waitFor()
  await page.getByRole('button', { name: 'Try again now' }).click()
  await page.getByText('Messages are sent and received.').waitFor()
})

test('if WhatsApp asks for a passkey, the panel says so in place of the QR code', async () => {
  await network.misbehave({ kind: 'fail_linking', how: 'passkey', count: 1 })
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Passkey')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByRole('button', { name: 'Link a number' }).click()
  await page.getByTestId('qr').waitFor()
  const qr = await until('a code', async () => (await harness.service.admin.connection(id)).qr)
  await network.scanQr(qr).catch(() => undefined)
  await page.getByText('The number could not be linked').waitFor()
  await page.getByText('asks this account for a passkey').waitFor()
  expect(await page.getByTestId('qr').count()).toBe(0)
  await page.getByRole('button', { name: 'Link a number' }).click()
  await network.scanQr(await until('a code', async () => (await harness.service.admin.connection(id)).qr))
  await page.getByText('Messages are sent and received.').waitFor()
})

test('a restriction is shown with its end and the messages that wait for it, and so are the reasons for closed connections', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Restricted')
  await harness.service.admin.connect(id)
  const qr = await until('a code', async () => (await harness.service.admin.connection(id)).qr)
  const { phone } = await network.scanQr(qr)
  await harness.service.admin.untilState(id, 'connected')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByText('1 × code 515').waitFor()
  await network.misbehave({ kind: 'restrict', account: phone, seconds: 3_600 })
  await page.getByText('Messages to them wait; others are sent').waitFor()
  await page.getByText('WhatsApp does not let the number start new chats until').waitFor()
  await network.misbehave({ kind: 'restrict', account: phone, seconds: null })
  await page.getByText('Messages to them wait; others are sent').waitFor({ state: 'detached' })
  expect(harness.complaints).toEqual([])
})

test('two instances with one number warn of each other in every language, until one is unlinked', async () => {
  const { admin } = harness.service
  const link = async (name: string) => {
    const { id } = await admin.createInstance('whatsapp', name)
    await admin.connect(id)
    const qr = await until('a QR code', async () => (await admin.connection(id)).qr)
    const { phone } = await network.scanQr(qr, 'the phone')
    await admin.untilState(id, 'connected')
    return { id, phone }
  }
  const first = await link('First')
  // The simulated phone has one linked device, so the first instance must not be online when the second is linked.
  await network.misbehave({ kind: 'stream_error', account: first.phone, conflict: 'replaced' })
  await admin.untilState(first.id, 'stopped')
  const second = await link('Second <b>')
  const pages = await Promise.all(
    LANGUAGES.map(async ({ code, load }) => {
      const warning = (await load()).connection.sameNumber
      const page = await harness.openSignedIn(`/instances/${first.id}`, { locale: code })
      await page.getByText(warning('“Second <b>”'), { exact: true }).waitFor()
      await page.goto(`${harness.url}/instances/${second.id}`)
      await page.getByText(warning('“First”'), { exact: true }).waitFor()
      return { page, warning: warning('“First”') }
    }),
  )
  await admin.logout(first.id)
  for (const { page, warning } of pages) {
    await page.getByText(warning, { exact: true }).waitFor({ state: 'detached' })
  }
  expect(harness.complaints).toEqual([])
})

/** Cuts the connection and refuses the next login. */
function refusedWith(reason: string): (account: string) => Order[] {
  return account => [
    { kind: 'refuse_logins', reason, count: 1, account },
    { kind: 'cut', account },
  ]
}
