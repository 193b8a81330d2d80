import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Network, startNetwork } from '../network.ts'
import { BareProgram } from '../sessions/bare-program.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

let harness: PanelHarness
let network: Network
let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pombal-panel-import-'))
  network = await startNetwork()
  harness = await PanelHarness.start({ WHATSAPP_URL: network.url })
})
afterAll(async () => {
  await harness?.dispose()
  await network?.close()
  rmSync(folder, { recursive: true, force: true })
})

test('a number that another program has linked is taken over from its folder, and connects without a code', async () => {
  const shop = join(folder, 'shop')
  const old = await new BareProgram(network.url, shop).start()
  let phone = ''
  await old.link(async qr => {
    phone = (await network.scanQr(qr)).phone
  })
  await old.stop()
  const page = await harness.openSignedIn()
  await page.getByRole('button', { name: 'Take over a number from another program' }).click()
  const create = page.getByRole('button', { name: 'Create', exact: true })
  await expect.poll(() => create.isDisabled()).toBe(true)
  await page.getByLabel('Folder of the session').setInputFiles(shop)
  await create.click()
  await page.waitForURL(/\/instances\/inst_/)
  const id = /inst_[0-9a-z]+/.exec(page.url())![0]
  const imported = await harness.service.admin.connection(id)
  expect(imported).toMatchObject({ state: 'stopped', cause: 'imported', phone })
  await page.getByText('The session comes from another program.').waitFor()
  await page.getByRole('button', { name: 'Try again now' }).click()
  await harness.service.admin.untilState(id, 'connected')
  await until('no code was shown', async () => (await harness.service.admin.connection(id)).qr === null)
  expect(harness.complaints).toEqual([])
  await page.context().close()
})
