import type { Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { PanelHarness } from './harness.ts'

const WIDTHS = [360, 1280] as const
const ANA = '5511987654321'
/** A contact chooses their name. */
const LONG_NAME = 'W'.repeat(100)

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(async () => {
  await harness.dispose()
  expect(harness.complaints).toEqual([])
})
afterEach(() => harness.closePages())

async function expectWithin(inner: Locator, outer: Locator): Promise<void> {
  await inner.scrollIntoViewIfNeeded()
  const [a, b] = [(await inner.boundingBox())!, (await outer.boundingBox())!]
  expect(a.x).toBeGreaterThanOrEqual(b.x)
  expect(a.x + a.width).toBeLessThanOrEqual(b.x + b.width)
}

test.each(WIDTHS)(
  'at %i pixels, “Send” lies inside the conversation, however long the name of the contact is',
  async width => {
    const { id } = await harness.service.admin.createConnected(`Long name ${width}`)
    await harness.service.admin.writeAsContact(id, { from: ANA, name: LONG_NAME, text: 'Hello' })
    const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`, { viewport: { width, height: 860 } })
    const chat = page.getByRole('region', { name: LONG_NAME })
    const send = chat.getByRole('button', { name: en.send.action, exact: true })
    await send.waitFor()
    await expectWithin(chat, page.locator('main'))
    await expectWithin(send, chat)
  },
)

test.each(WIDTHS)('at %i pixels, a file lies inside its bubble, however long its name is', async width => {
  const { id, token } = await harness.service.admin.createConnected(`Long file ${width}`)
  const filename = `${'report-'.repeat(15)}.txt`
  const response = await fetch(`${harness.url}/v1/media?filename=${filename}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: `Report ${width}`,
  })
  const { data } = (await response.json()) as { data: { id: string } }
  await harness.service.instance(id, token).sendMedia({ to: ANA, media: data.id }, filename.slice(0, 40))
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${ANA}`, { viewport: { width, height: 860 } })
  const bubble = page.getByRole('log').getByRole('article')
  const file = bubble.getByRole('link', { name: filename })
  await file.waitFor()
  await expectWithin(file, bubble)
  await expectWithin(bubble, page.getByRole('log'))
})
