import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
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
  await save.click()
  await page.getByText('The proxy works.').waitFor()
  const shown = `socks5://shop@127.0.0.1:${proxy.port}`
  await page.getByText(shown).waitFor()
  expect(await admin.proxy(id)).toEqual({ url: shown })
  expect(await page.content()).not.toContain(LOGIN.password)
  expect(await url.inputValue()).toBe('')

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
