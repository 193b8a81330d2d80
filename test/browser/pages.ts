import type { Page } from 'playwright-core'
import type { Words } from '../../panel/src/i18n/en.ts'
import { until } from '../until.ts'
import type { PanelHarness } from './harness.ts'

const HOSTILE = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>{{7*7}}'--`

/**
 * Creates an instance whose names, texts and responses contain markup. @returns the paths of the pages that show it; attempts are
 * given up after a retry, so the harness needs a short schedule
 */
export async function createPages(harness: PanelHarness): Promise<{ instanceId: string; paths: string[] }> {
  const { id, token } = await harness.service.admin.createConnected(HOSTILE.slice(0, 90))
  harness.receiver.answerWith({ kind: 'status', status: 500, body: HOSTILE })
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  const message = await instance.send('5511987654321', HOSTILE)
  await harness.service.admin.writeAsContact(id, { from: '5511987654321', text: HOSTILE, name: HOSTILE.slice(0, 25) })
  const event = await until('an event given up', async () => {
    return (await harness.service.admin.listEvents(id, '?state=exhausted')).find(
      ({ messageId }) => messageId === message.id,
    )
  })
  const at = `/instances/${id}`
  const paths = [
    '/',
    '/settings',
    '/alerts',
    '/people',
    '/audit',
    at,
    `${at}/inbox`,
    `${at}/inbox?chat=5511987654321`,
    `${at}/messages`,
    `${at}/messages?open=${message.id}`,
    `${at}/events`,
    `${at}/events?open=${event.id}`,
    `${at}/files`,
    `${at}/webhook`,
    `${at}/phone`,
    `${at}/settings`,
  ]
  return { instanceId: id, paths }
}

/** The dialogs, by page and by the button that opens them. */
export const DIALOGS: readonly (readonly [path: string, button: (words: Words) => string])[] = [
  ['/', words => words.instances.create],
  ['/', words => words.tools.searchKeys],
  ['/messages', words => words.messages.send],
  ['/events', words => words.events.redeliverMany],
  ['/phone', words => words.phone.writeAs],
  ['/webhook', words => words.webhook.rotate],
  ['/webhook', words => words.endpoints.add],
  ['/settings', words => words.instanceSettings.newToken],
  ['/settings', words => words.keys.create],
  ['/settings', words => words.instanceSettings.remove],
]

export async function show(harness: PanelHarness, page: Page, path: string): Promise<void> {
  await page.goto(harness.url + path)
  await page.locator('h1').first().waitFor()
  if (path.includes('open=')) await page.getByRole('dialog').getByRole('listitem').first().waitFor()
  await page.locator('div[role="status"][class*="waiting"]').first().waitFor({ state: 'detached' })
}
