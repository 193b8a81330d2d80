import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Network, startNetwork } from '../network.ts'
import { until } from '../until.ts'
import { Stage } from './stage.ts'

let stage: Stage
let network: Network
beforeAll(async () => {
  network = await startNetwork()
  stage = await Stage.start({ WHATSAPP_URL: network.url })
})
afterAll(async () => {
  await stage.dispose()
  await network.close()
})

test('the QR code on the page links the number that scans it', async () => {
  const { id } = await stage.service.admin.createInstance('whatsapp', 'Shop')
  const page = await stage.openSignedIn(`/instances/${id}`)
  await page.getByText('Point the phone at this code').waitFor()
  await page.getByRole('button', { name: 'Link a number' }).click()
  await page.getByTestId('qr').waitFor()
  await page.getByText(/A new code comes in \d+ s/).waitFor()
  const qr = await until('a code', async () => (await stage.service.admin.connection(id)).qr)
  await network.scanQr(qr)
  await page.getByText('Messages go out and come in.').waitFor()
  expect(await page.getByTestId('qr').count()).toBe(0)
  expect(stage.complaints).toEqual([])
})

test('a new instance for a real number shows its code without being asked', async () => {
  const page = await stage.openSignedIn('/')
  await page.getByRole('button', { name: 'New instance' }).click()
  await page.getByLabel('Name', { exact: true }).fill('At once')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByTestId('qr').waitFor()
})

test('a pairing code is shown for the number typed in', async () => {
  const { id } = await stage.service.admin.createInstance('whatsapp', 'By code')
  const page = await stage.openSignedIn(`/instances/${id}`)
  await page.getByText('Pairing code').click()
  await page.getByLabel('Your number').fill('12')
  await page.getByRole('button', { name: 'Get a pairing code' }).click()
  await page.getByText('Digits only, with the country code').waitFor()
  await page.getByLabel('Your number').fill('+55 11 98765-4321')
  await page.getByRole('button', { name: 'Get a pairing code' }).click()
  await page.getByText(/^[A-Z0-9]{4}-[A-Z0-9]{4}$/).waitFor()
})

test('a code that rotates is redrawn, and one that ran out says so with one button', async () => {
  const { id } = await stage.service.admin.createInstance('whatsapp', 'Slow')
  const page = await stage.openSignedIn('/')
  // The codes of WhatsApp live for minutes: what the service would answer is told to the page at its door.
  const connection = await stage.service.admin.connection(id)
  const answer = (changed: object) => ({ json: { data: { ...connection, ...changed } } })
  const linking = { state: 'linking', reason: 'Scan.', qrExpiresAt: new Date(Date.now() + 20_000).toISOString() }
  let shown = answer({ ...linking, qr: '2@first' })
  await page.route(`**/instances/${id}/connection`, route => route.fulfill(shown))
  const tellChange = () => stage.service.admin.rename(id, 'Slow')

  await page.goto(`${stage.url}/instances/${id}`)
  const code = page.getByTestId('qr').locator('path')
  await page.getByText('Live', { exact: true }).waitFor()
  const first = await code.getAttribute('d')
  shown = answer({ ...linking, qr: '2@second' })
  await tellChange()
  await until('another code', async () => (await code.getAttribute('d')) !== first)

  shown = answer({ state: 'unlinked', cause: 'code_expired', reason: 'Nobody linked the number in time.' })
  await tellChange()
  await page.getByText('The code has expired').waitFor()
  await page.unroute(`**/instances/${id}/connection`)
  await page.getByRole('button', { name: 'Show a new code' }).click()
  await page.getByTestId('qr').waitFor()
})

test.each([
  ['banned', 'WhatsApp has banned or restricted this number'],
  ['version_refused', 'WhatsApp refuses the version we present'],
  ['replaced', 'Another program opened this same session elsewhere'],
])('a stop because of %s is told with its remedy', async (cause, words) => {
  const { id } = await stage.service.admin.createInstance('whatsapp', 'Stopped')
  const connection = await stage.service.admin.connection(id)
  const page = await stage.openSignedIn('/')
  const data = { ...connection, state: 'stopped', cause, reason: 'Refused.' }
  await page.route(`**/instances/${id}/connection`, route => route.fulfill({ json: { data } }))
  await page.goto(`${stage.url}/instances/${id}`)
  await page.getByText(words).waitFor()
  await page.getByRole('button', { name: 'Try again now' }).waitFor()
})
