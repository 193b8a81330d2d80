import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { noteSecret } from '../logs/log-capture.ts'
import { type Network, startNetwork } from '../network.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let harness: PanelHarness
let network: Network
beforeAll(async () => {
  network = await startNetwork()
  harness = await PanelHarness.start({ WHATSAPP_URL: network.url })
})
afterAll(async () => {
  await harness?.dispose()
  await network?.close()
})
afterEach(() => harness.closePages())

const RETURN_URL = 'https://shop.example.com/done'

async function createLink(id: string, title: string): Promise<URL> {
  const response = await fetch(`${harness.url}/admin/v1/instances/${id}/links`, {
    method: 'POST',
    headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ expiresInMinutes: 60, title, returnUrl: RETURN_URL }),
  })
  const { data } = (await response.json()) as { data: { url: string } }
  const url = new URL(data.url, harness.url)
  noteSecret(url.hash.slice(1))
  return url
}

/** Does the same in the panel, as an operator. */
async function createLinkInPanel(id: string, title: string): Promise<URL> {
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByRole('button', { name: 'Create a link for that person' }).click()
  await page.getByLabel('Name on the page').fill(title)
  await page.getByLabel('Address to return to').fill(RETURN_URL)
  await page.getByRole('button', { name: 'Create the link' }).click()
  const url = new URL((await page.getByRole('dialog').locator('code').textContent()) ?? '')
  noteSecret(url.hash.slice(1))
  await page.context().close()
  return url
}

describe.each(LANGUAGES)('in $code', ({ code, load }) => {
  test.each([1280, 360])('a person without an account links a number, on a page %i pixels wide', async width => {
    const { linkPage } = await load()
    const { id } = await harness.service.admin.createInstance('whatsapp', 'Internal name')
    const url = await createLink(id, 'Loja da Ana')
    const page = await harness.open(url.pathname + url.hash, { locale: code, viewport: { width, height: 800 } })
    await page.getByText(linkPage.lead).waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe(code)
    await page.getByRole('button', { name: linkPage.begin }).click()
    await page.getByTestId('qr').waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width)
    await page.evaluate(AXE)
    // biome-ignore lint/suspicious/noExplicitAny: the library adds itself to the window
    const { violations } = await page.evaluate(() => (window as any).axe.run())
    expect(violations).toEqual([])
    await page.reload()
    await page.getByTestId('qr').waitFor()
    const text = await page.locator('body').innerText()
    expect(text).toContain('Loja da Ana')
    expect(text).not.toContain('Internal name')
    expect(text).not.toContain(id)
    expect(await page.locator('nav').count()).toBe(0)
    const other = await harness.open(url.pathname + url.hash, { locale: code })
    await other.getByRole('heading', { name: linkPage.elsewhere }).waitFor()
    const qr = await until('a code', async () => (await harness.service.admin.connection(id)).qr)
    await network.scanQr(qr)
    await page.getByRole('heading', { name: linkPage.done }).waitFor()
    const back = page.getByRole('link', { name: linkPage.back })
    expect(await back.getAttribute('href')).toBe(RETURN_URL)
    const late = await harness.open(url.pathname + url.hash, { locale: code })
    await late.getByRole('heading', { name: linkPage.gone }).waitFor()
    expect(harness.complaints).toEqual([])
  })
})

test('a revoked link ends on the open page', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Revoked')
  const url = await createLinkInPanel(id, 'Shop')
  const page = await harness.open(url.pathname + url.hash)
  await page.getByRole('button', { name: 'Begin' }).click()
  await page.getByTestId('qr').waitFor()
  const panel = await harness.openSignedIn(`/instances/${id}`)
  await panel.getByRole('button', { name: 'Revoke Shop' }).click()
  await panel.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByRole('heading', { name: 'This link does not work any more' }).waitFor()
  expect(await page.getByTestId('qr').count()).toBe(0)
})

test('another link that is pasted into the same tab replaces the first one', async () => {
  const [first, second] = await Promise.all(
    ['First', 'Second'].map(async name => {
      const { id } = await harness.service.admin.createInstance('whatsapp', name)
      return createLink(id, `Shop ${name}`)
    }),
  )
  const page = await harness.open(first!.pathname + first!.hash)
  await page.getByRole('button', { name: 'Begin' }).click()
  await page.getByTestId('qr').waitFor()
  await page.goto(second!.href)
  await page.getByText('Shop Second').waitFor()
  await page.getByRole('button', { name: 'Begin' }).waitFor()
  expect(await page.getByTestId('qr').count()).toBe(0)
})

test('while the service is away the page says so and shows no code, which may have expired', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Away')
  const url = await createLink(id, 'Shop')
  const page = await harness.open(url.pathname + url.hash)
  await page.getByRole('button', { name: 'Begin' }).click()
  await page.getByTestId('qr').waitFor()
  await page.route(/\/link\/read$/, route => route.abort('connectionrefused'))
  await page.getByRole('alert').getByText('The service does not answer').waitFor()
  expect(await page.getByTestId('qr').count()).toBe(0)
  await page.unrouteAll({ behavior: 'wait' })
  await page.getByTestId('qr').waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
  harness.complaints.length = 0
})
