import { afterAll, beforeAll, expect, test } from 'vitest'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
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
  await harness?.dispose()
  await network?.close()
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
    await page.context().close()
  }
  expect(harness.complaints).toEqual([])
})
