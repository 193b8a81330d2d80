import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Words } from '../../panel/src/i18n/en.ts'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { noteSecret } from '../logs/log-capture.ts'
import { type Network, startNetwork } from '../network.ts'
import { TestPasskey } from '../passkey.ts'
import { until } from '../until.ts'
import { problemsOf } from './accessibility.ts'
import { PanelHarness } from './harness.ts'

const WHATSAPP = 'https://web.whatsapp.com/'
/** The strictest policy, because the program must not depend on what the page allows. */
const POLICY = "default-src 'none'; require-trusted-types-for 'script'"

let harness: PanelHarness
let network: Network
beforeAll(async () => {
  network = await startNetwork()
  harness = await PanelHarness.start({ WHATSAPP_URL: network.url, WHATSAPP_PASSKEY: 'on' })
})
afterAll(async () => {
  await harness?.dispose()
  await network?.close()
})
beforeEach(async () => {
  await network.misbehave({ kind: 'clear' })
})

let numbers = 5511912360100

/** An instance, the phone that links it, and the passkey of its account. */
async function createShop(name: string) {
  const { id } = await harness.service.admin.createInstance('whatsapp', name)
  const { phone } = await network.openAccount(String(numbers++))
  const passkey = new TestPasskey()
  await network.misbehave({ kind: 'require_passkey', account: phone, credential: passkey.credential })
  const scan = async () => {
    const qr = await until('a code', async () => (await harness.service.admin.connection(id)).qr)
    // Answered when the number is linked.
    network.scanQr(qr, phone).catch(() => undefined)
  }
  return { id, phone, passkey, scan }
}

interface Held {
  /** The passkey that the browser holds, by default under its own ID. */
  passkey: TestPasskey
  id?: string
  isUserVerified?: boolean
}

/** A browser with WhatsApp's page, and an authenticator that holds a passkey. */
async function openWhatsapp({ passkey, id = passkey.credential.id, isUserVerified = true }: Held) {
  const page = await harness.open()
  await page.context().route(`${WHATSAPP}**`, route =>
    route.fulfill({
      contentType: 'text/html',
      headers: { 'content-security-policy': POLICY },
      body: '<p>WhatsApp</p>',
    }),
  )
  await page.addInitScript(recordUses)
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified,
      automaticPresenceSimulation: true,
    },
  })
  await devtools.send('WebAuthn.addCredential', {
    authenticatorId,
    credential: {
      credentialId: Buffer.from(id, 'base64url').toString('base64'),
      isResidentCredential: true,
      rpId: 'whatsapp.com',
      privateKey: passkey.privateKey,
      userHandle: Buffer.from('owner').toString('base64'),
      signCount: 1,
    },
  })
  await page.goto(WHATSAPP)
  return page
}

/** Records every use of what the page stores, and every way to send something. */
function recordUses(): void {
  const uses: string[] = []
  Object.assign(window, { uses })
  const watch = (owner: object, name: string) => {
    const own = Object.getOwnPropertyDescriptor(owner, name)
    function read(this: unknown) {
      uses.push(name)
      return own?.get?.call(this) ?? own?.value
    }
    Object.defineProperty(owner, name, { configurable: true, get: read, set: () => void uses.push(name) })
  }
  for (const name of [
    'localStorage',
    'sessionStorage',
    'indexedDB',
    'caches',
    'fetch',
    'XMLHttpRequest',
    'WebSocket',
  ]) {
    watch(window, name)
  }
  watch(Document.prototype, 'cookie')
  watch(Navigator.prototype, 'sendBeacon')
}

/** Copies the program, which is shown in place of the QR code. */
async function programOn(page: Page, words: Words): Promise<string> {
  await page.getByText(words.passkey.title).waitFor()
  return (await page.getByLabel(words.passkey.program).locator('pre').textContent()) ?? ''
}

/** Runs the program on WhatsApp's page, as pasting into the console does. @returns the answer */
async function askThere(whatsapp: Page, program: string, { box }: Words['passkey'], asks: string): Promise<string> {
  const requested: string[] = []
  whatsapp.on('request', request => requested.push(request.url()))
  await whatsapp.evaluate(program)
  const dialog = whatsapp.getByRole('dialog')
  await dialog.getByText(asks).waitFor()
  await dialog.getByRole('button', { name: box.use }).click()
  const answer = await dialog.getByRole('textbox').inputValue()
  const given = JSON.parse(answer)
  expect(Object.keys(given)).toEqual(['id', 'rawId', 'type', 'response'])
  expect(Object.keys(given.response)).toEqual(['clientDataJSON', 'authenticatorData', 'signature', 'userHandle'])
  for (const part of [given.response.clientDataJSON, given.response.authenticatorData, given.response.signature]) {
    noteSecret(part)
  }
  // biome-ignore lint/suspicious/noExplicitAny: `recordUses` adds it
  expect(await whatsapp.evaluate(() => (window as any).uses)).toEqual([])
  expect(requested).toEqual([])
  await dialog.getByRole('button', { name: box.close }).click()
  expect(await whatsapp.getByRole('dialog').count()).toBe(0)
  return answer
}

async function sendAnswer(page: Page, { passkey }: Words, answer: string): Promise<void> {
  await page.getByLabel(passkey.answer).fill(answer)
  await page.getByRole('button', { name: passkey.send }).click()
}

/** The linking page, or the instance in the panel, at the step with the passkey. */
async function openPlace(place: 'panel' | 'link', words: Words, locale: string, name: string) {
  const shop = await createShop(name)
  if (place === 'panel') {
    const page = await harness.openSignedIn(`/instances/${shop.id}`, { locale })
    await page.getByRole('button', { name: words.connection.link }).click()
    await shop.scan()
    return { ...shop, page, linked: words.connection.states.connected.text }
  }
  const created = await fetch(`${harness.url}/admin/v1/instances/${shop.id}/links`, {
    method: 'POST',
    headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ expiresInMinutes: 60, title: name }),
  })
  const { data } = (await created.json()) as { data: { url: string } }
  const { pathname, hash } = new URL(data.url, harness.url)
  noteSecret(hash.slice(1))
  const page = await harness.open(pathname + hash, { locale, viewport: { width: 360, height: 800 } })
  await page.getByRole('button', { name: words.linkPage.begin }).click()
  await shop.scan()
  return { ...shop, page, linked: words.linkPage.done }
}

/** Expects that nothing is cut off, and that axe finds no violation. */
async function expectUsable(page: Page): Promise<void> {
  const { width } = page.viewportSize()!
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width)
  expect(await problemsOf(page)).toEqual([])
}

const close = (...pages: Page[]) => Promise.all(pages.map(page => page.context().close()))

describe.each(LANGUAGES)('in $code', ({ code: locale, load }) => {
  test.each(['panel', 'link'] as const)('on the page of the %s, a number is linked with its passkey', async place => {
    const words = await load()
    const { page, passkey, linked } = await openPlace(place, words, locale, 'Loja da Ana')
    const program = await programOn(page, words)
    expect(await page.getByTestId('qr').count()).toBe(0)
    await expectUsable(page)
    const whatsapp = await openWhatsapp({ passkey })
    const answer = await askThere(whatsapp, program, words.passkey, 'Loja da Ana')
    await sendAnswer(page, words, answer.slice(0, -1))
    await page.getByText(words.passkey.answerWrong).waitFor()
    await sendAnswer(page, words, answer)
    await page.getByText(linked).waitFor()
    expect(harness.complaints).toEqual([])
    await close(page, whatsapp)
  })

  test.each(['panel', 'link'] as const)(
    'on the page of the %s, WhatsApp asks for another answer after a refused one, and then a code is compared',
    async place => {
      const words = await load()
      const { page, passkey, phone, linked } = await openPlace(place, words, locale, 'Loja da Bia')
      const first = await programOn(page, words)
      const stranger = await openWhatsapp({ passkey: new TestPasskey(), id: passkey.credential.id })
      await sendAnswer(page, words, await askThere(stranger, first, words.passkey, 'Loja da Bia'))
      await page.getByText(words.passkey.refused).waitFor()
      const second = await programOn(page, words)
      expect(second).not.toBe(first)
      const whatsapp = await openWhatsapp({ passkey })
      await sendAnswer(page, words, await askThere(whatsapp, second, words.passkey, 'Loja da Bia'))
      await page.getByText(words.passkey.compare).waitFor()
      await expectUsable(page)
      const { passkeyCode } = await network.misbehave({ kind: 'passkey_code', account: phone })
      await page.getByText(`${passkeyCode!.slice(0, 4)}-${passkeyCode!.slice(4)}`).waitFor()
      await page.getByRole('button', { name: words.passkey.same }).click()
      await page.getByText(linked).waitFor()
      expect(harness.complaints).toEqual([])
      await close(page, stranger, whatsapp)
    },
  )
})

test('another code than the phone’s: one button ends the linking', async () => {
  const words = await LANGUAGES.find(({ code }) => code === 'en')!.load()
  const { page, passkey, phone, id } = await openPlace('panel', words, 'en-GB', 'Shop')
  await network.misbehave({ kind: 'play_passkey', how: 'refused', count: 1 })
  const whatsapp = await openWhatsapp({ passkey })
  const first = await programOn(page, words)
  await sendAnswer(page, words, await askThere(whatsapp, first, words.passkey, 'Shop'))
  await page.getByText(words.passkey.refused).waitFor()
  await network.misbehave({ kind: 'play_passkey', how: 'wrong_code' })
  const second = await programOn(page, words)
  await sendAnswer(page, words, await askThere(whatsapp, second, words.passkey, 'Shop'))
  const shown = await page.getByText(/^[1-9A-HJ-NP-TV-Z]{4}-[1-9A-HJ-NP-TV-Z]{4}$/).textContent()
  const { passkeyCode } = await network.misbehave({ kind: 'passkey_code', account: phone })
  expect(shown!.replace('-', '')).not.toBe(passkeyCode)
  await page.getByRole('button', { name: words.passkey.differ }).click()
  await page.getByRole('button', { name: words.connection.link }).waitFor()
  expect((await harness.service.admin.connection(id)).state).toBe('unlinked')
  await close(page, whatsapp)
})

test('a person who answers too late, or is refused three times, reads why and links again', async () => {
  const words = await LANGUAGES.find(({ code }) => code === 'en')!.load()
  await network.misbehave({ kind: 'play_passkey', how: 'expires', count: 1 })
  const { page, passkey, scan } = await openPlace('panel', words, 'en-GB', 'Shop')
  await page.getByText(words.connection.remedies.passkey_expired).waitFor()
  await network.misbehave({ kind: 'play_passkey', how: 'refused', count: 3 })
  await page.getByRole('button', { name: words.connection.link }).click()
  await scan()
  const whatsapp = await openWhatsapp({ passkey })
  let before = ''
  for (let tries = 1; tries <= 3; tries++) {
    before = await until('the next program', async () => {
      const next = await programOn(page, words)
      return next !== before && next
    })
    await sendAnswer(page, words, await askThere(whatsapp, before, words.passkey, 'Shop'))
  }
  await page.getByText(words.connection.remedies.passkey_refused).waitFor()
  await page.getByRole('button', { name: words.connection.link }).waitFor()
  await close(page, whatsapp)
})

test('the program works only on WhatsApp’s page, and only if the user is verified', async () => {
  const words = await LANGUAGES.find(({ code }) => code === 'en')!.load()
  const { page, passkey } = await openPlace('panel', words, 'en-GB', 'Shop')
  const program = await programOn(page, words)
  const elsewhere = await harness.open('/link')
  await elsewhere.evaluate(program)
  await elsewhere.getByText(words.passkey.box.elsewhere).waitFor()
  expect(await elsewhere.getByRole('button', { name: words.passkey.box.use }).isDisabled()).toBe(true)
  const unverified = await openWhatsapp({ passkey, isUserVerified: false })
  await unverified.evaluate(program)
  await unverified.getByRole('button', { name: words.passkey.box.use }).click()
  await unverified.getByText('NotAllowedError').waitFor()
  expect(await unverified.getByRole('textbox').count()).toBe(0)
  await close(page, elsewhere, unverified)
})
