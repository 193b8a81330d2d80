import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { startNetwork } from '../network.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const GIB = 1024 ** 3

let network: Awaited<ReturnType<typeof startNetwork>>
let harness: PanelHarness
beforeAll(async () => {
  network = await startNetwork()
  harness = await PanelHarness.start({ WHATSAPP_URL: network.url })
})
afterAll(async () => {
  await harness.dispose()
  await network.close()
})
afterEach(() => harness.closePages())

/** An instance that is linked to a number of the simulated network. */
async function link(name: string): Promise<{ id: string; phone: string }> {
  const { admin } = harness.service
  const { id } = await admin.createInstance('whatsapp', name)
  await admin.connect(id)
  const code = await until('a code', async () => (await admin.connection(id)).qr)
  const { phone } = await network.scanQr(code)
  await admin.untilState(id, 'connected')
  return { id, phone }
}

test('the first page names numbers that are down before restricted ones, with a link to the remedy', async () => {
  const { admin } = harness.service
  const [barber, shop] = [await link('Barber'), await link('Flower shop')]
  const page = await harness.openSignedIn('/')
  const attention = page.getByRole('region', { name: /needs? attention/ })
  await page.getByRole('row').filter({ hasText: barber.id }).getByText('Connected', { exact: true }).waitFor()
  expect(await attention.count()).toBe(0)

  await network.misbehave({ kind: 'restrict', account: shop.phone, seconds: 3_600 })
  await attention.getByRole('listitem').filter({ hasText: 'Flower shop' }).getByText('Restricted').waitFor()
  await network.misbehave({ kind: 'refuse_logins', reason: '403', count: 1, account: barber.phone })
  await network.misbehave({ kind: 'cut', account: barber.phone })
  await admin.untilState(barber.id, 'stopped')
  const [first, second] = [attention.getByRole('listitem').nth(0), attention.getByRole('listitem').nth(1)]
  await first.getByText('Barber').waitFor()
  await first.getByText('Stopped').waitFor()
  await second.getByText('Flower shop').waitFor()
  await attention.getByRole('heading', { name: '2 things need attention' }).waitFor()

  await first.getByRole('link', { name: 'Open the instance' }).click()
  await page.route(/\/connect$/, route => route.abort('connectionrefused'))
  await page.getByRole('button', { name: 'Try again now' }).click()
  await page.getByRole('alert').filter({ hasText: en.problems.unanswered }).waitFor()
  await page.unrouteAll({ behavior: 'wait' })
  harness.complaints.length = 0
  await page.getByRole('button', { name: 'Try again now' }).click()
  await admin.untilState(barber.id, 'connected')
  await page.goto(harness.url)
  await attention.getByRole('heading', { name: '1 thing needs attention' }).waitFor()
  expect(await attention.getByText('Barber').count()).toBe(0)
})

test('the first page says that the disk is nearly full, before everything else', async () => {
  const page = await harness.openSignedIn('/settings')
  // The disk of this machine cannot be filled for a test.
  await page.route('**/admin/v1/attention', async route => {
    const answer = await route.fetch()
    const { data } = (await answer.json()) as { data: object }
    const disk = { freeBytes: 1.5 * GIB, totalBytes: 100 * GIB, isNearlyFull: true }
    await route.fulfill({ response: answer, json: { data: { ...data, disk } } })
  })
  await page.goto(harness.url)
  const first = page
    .getByRole('region', { name: /needs? attention/ })
    .getByRole('listitem')
    .first()
  await first.getByText('The disk is nearly full').waitFor()
  await first.getByText('1.5 of 100.0 GiB free').waitFor()
  await first.getByText('RETENTION_DAYS').waitFor()
})
