import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { en } from '../../panel/src/i18n/en.ts'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { startNetwork } from '../network.ts'
import { until } from '../until.ts'
import { ensurePanelBuilt } from './ensure-built.ts'
import { PanelHarness } from './harness.ts'

/**
 * `npm run screenshots`: takes screenshots of every page in light, dark and narrow, for `docs/screenshots`.
 * `npm run screenshots -- FOLDER`: takes them in every size, colour and language, to look through.
 */

const [toLookThrough] = process.argv.slice(2)
const FOLDER = toLookThrough ?? join(import.meta.dirname, '../../docs/screenshots')
const LOOKS: Record<string, BrowserContextOptions> = toLookThrough === undefined ? documented() : everyLook()

function documented(): Record<string, BrowserContextOptions> {
  return {
    light: { colorScheme: 'light', viewport: { width: 1280, height: 860 } },
    dark: { colorScheme: 'dark', viewport: { width: 1280, height: 860 } },
    narrow: { colorScheme: 'light', viewport: { width: 360, height: 780 }, isMobile: true, hasTouch: true },
  }
}

function everyLook(): Record<string, BrowserContextOptions> {
  const looks: Record<string, BrowserContextOptions> = {}
  for (const { code } of LANGUAGES) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const all = { locale: code === 'en' ? 'en-GB' : code, colorScheme }
      looks[`${code}-${colorScheme}-1440`] = { ...all, viewport: { width: 1440, height: 900 } }
      looks[`${code}-${colorScheme}-1280`] = { ...all, viewport: { width: 1280, height: 720 } }
      const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
      looks[`${code}-${colorScheme}-390`] = { ...all, ...phone }
    }
  }
  return looks
}

const SETTLE_MS = 450
const ORDERS = [
  'Your order is on its way',
  'Your table is ready',
  'Thank you! Here is your receipt',
  'See you on Friday',
]

interface Scene {
  name: string
  path: string
  /** Brings the page to the state of the screenshot. `say` translates an English text of the panel. */
  prepare?: (page: Page, say: (text: string) => string) => Promise<unknown>
  whole?: boolean
}

ensurePanelBuilt()
await using harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '300,600,600000' })
const network = await startNetwork()
// Here an event is given up after one retry.
await using linking = await PanelHarness.start({ WHATSAPP_URL: network.url, WEBHOOK_RETRY_DELAYS_MS: '100' })
await rm(FOLDER, { recursive: true, force: true })
await mkdir(FOLDER, { recursive: true })

await shoot(harness, [
  { name: '01-sign-in', path: '/sign-in' },
  { name: '02-first', path: '/', prepare: (page, say) => page.getByText(say('Try the sandbox')).waitFor() },
])
await shoot(harness, await life())
await shoot(linking, await linkingScenes())
await shoot(linking, await troubledScenes())
await network.close()

/** An instance that has run for some hours, and what its pages show. */
async function life(): Promise<Scene[]> {
  const { service, receiver } = harness
  const { id, token } = await service.admin.createConnected('Padaria Central')
  const other = await service.admin.createConnected('Clinic reminders')
  await service.admin.createInstance('whatsapp', 'Bookshop')
  const instance = service.instance(id, token)
  receiver.answerWith(({ headers, body }) =>
    headers['x-service-event'] === 'message.delivered' && body.includes('15005550005')
      ? { kind: 'status', status: 503, body: '{"error":"database is starting up"}' }
      : { kind: 'status', status: 200, body: 'ok' },
  )
  await instance.setWebhook(receiver.url)
  await change(harness, 'POST', '/endpoints', { url: receiver.url, description: 'Night shift' })
  await change(harness, 'POST', '/accounts', { name: 'ana@example.com', role: 'owner' })
  await change(harness, 'POST', '/accounts', { name: 'bruno@example.com', role: 'operator', instances: [id, other.id] })
  await change(harness, 'POST', '/accounts', { name: 'carla@example.com', role: 'viewer', instances: [id] })
  await change(harness, 'POST', `/instances/${id}/keys`, { name: 'Shop software', scopes: ['send', 'read'] })
  for (const [index, text] of ORDERS.entries()) await instance.send(`551198765432${index}`, text)
  for (const number of ['15005550001', '15005550002', '15005550003', '15005550005', '120363000000000042@g.us']) {
    await instance.send(number, 'Good morning! We have fresh bread.')
  }
  await service.instance(other.id, other.token).send('5511987654321', 'Your appointment is tomorrow at 9:30.')
  await service.admin.writeAsContact(id, { from: '5511987654320', text: 'Lovely, thank you!', name: 'Ana' })
  const failing = await until('an attempt that failed twice', async () => {
    const events = await service.admin.listEvents(id, '?kind=message.delivered')
    return events.find(({ delivery }) => delivery && delivery.state === 'pending' && delivery.attemptCount >= 2)
  })
  const read = await until('a message that was read', async () => {
    return (await service.admin.listMessages(id, '?state=read&to=5511987654320'))[0]
  })
  const at = `/instances/${id}`
  return [
    { name: '03-instances', path: '/?sort=name', prepare: page => page.getByText('Bookshop').waitFor() },
    {
      name: '04-overview',
      path: at,
      prepare: (page, say) => page.getByText(say('By outcome')).first().waitFor(),
      whole: true,
    },
    { name: '05-messages', path: `${at}/messages`, prepare: page => page.getByText('fresh bread').first().waitFor() },
    {
      name: '06-message',
      path: `${at}/messages?open=${read.id}`,
      prepare: (page, say) => page.getByText(say('The recipient has opened it.')).waitFor(),
    },
    { name: '07-events', path: `${at}/events`, prepare: page => page.getByText('message.').first().waitFor() },
    {
      name: '08-event',
      path: `${at}/events?open=${failing.id}`,
      prepare: async (page, say) => {
        await page
          .locator('summary', { hasText: say('Response') })
          .nth(1)
          .click()
      },
    },
    {
      name: '09-redeliver',
      path: `${at}/events`,
      prepare: async (page, say) => {
        await page.getByRole('button', { name: say('Redeliver…') }).click()
        await page.getByText(say('Already delivered')).click()
        await page.getByRole('dialog').getByRole('status').getByText(/\d/).waitFor()
      },
    },
    {
      name: '10-webhook',
      path: `${at}/webhook`,
      prepare: async (page, say) => {
        await page.getByRole('button', { name: say('Send a test event') }).click()
        await page.getByText(say('The test event was received.')).waitFor()
      },
      whole: true,
    },
    {
      name: '11-phone',
      path: `${at}/phone?with=5511987654320`,
      prepare: page => page.getByText('Lovely, thank you!').last().waitFor(),
    },
    {
      name: '12-instance-settings',
      path: `${at}/settings`,
      prepare: (page, say) => page.getByRole('button', { name: say('Delete the instance') }).waitFor(),
      whole: true,
    },
    {
      name: '13-settings',
      path: '/settings',
      prepare: (page, say) => page.getByText(say('this one')).first().waitFor(),
      whole: true,
    },
    {
      name: '14-new-instance',
      path: '/',
      prepare: async (page, say) => {
        await page.getByRole('button', { name: say('New instance') }).click()
        await page.getByRole('dialog').waitFor()
      },
    },
    {
      name: '16-token',
      path: '/',
      prepare: async (page, say) => {
        await page.getByRole('button', { name: say('New instance') }).click()
        await page.getByRole('radio', { name: say('Try the sandbox') }).check()
        await page.getByRole('button', { name: say('Create'), exact: true }).click()
        await page.getByText(say('Send from your program')).waitFor()
        await page.getByText(say('Messages are sent and received.')).waitFor()
      },
      whole: true,
    },
    { name: '20-alerts', path: '/alerts', prepare: page => page.getByText('Night shift').waitFor(), whole: true },
    { name: '21-people', path: '/people', prepare: page => page.getByText('bruno@example.com').waitFor(), whole: true },
    { name: '22-audit', path: '/audit', prepare: page => page.locator('time').first().waitFor() },
    { name: '23-files', path: `${at}/files`, prepare: page => page.locator('h2').first().waitFor() },
    {
      name: '27-inbox',
      path: `${at}/inbox?chat=5511987654320`,
      prepare: page => page.getByText('Lovely, thank you!').last().waitFor(),
    },
    {
      name: '24-search',
      path: '/',
      prepare: async (page, say) => {
        await page.getByRole('button', { name: say('Find anything (Ctrl+K)') }).click()
        await page.getByRole('combobox', { name: say('Name, number, message ID or event ID') }).fill('5511987654320')
        await page.getByRole('option').first().waitFor()
      },
    },
    { name: '26-guide', path: '/guides/webhooks', prepare: page => page.locator('article h2').first().waitFor() },
    { name: '25-docs', path: '/docs/', prepare: page => page.getByText('/v1/').first().waitFor() },
    {
      name: '17-failed-message',
      path: `${at}/messages?state=failed`,
      prepare: async page => {
        await page.getByRole('row').getByRole('link').first().click()
        await page.getByRole('dialog').getByText('recipient_not_on_whatsapp').waitFor()
      },
    },
  ]
}

/** A number that is not linked yet. */
async function linkingScenes(): Promise<Scene[]> {
  const { id } = await linking.service.admin.createInstance('whatsapp', 'Bookshop')
  await linking.service.admin.connect(id)
  const byCode = await linking.service.admin.createInstance('whatsapp', 'Flower shop')
  const refused = await linking.service.admin.createInstance('whatsapp', 'Barber')
  await linking.service.admin.connect(refused.id)
  const code = await until('a code', async () => (await linking.service.admin.connection(refused.id)).qr)
  const { phone } = await network.scanQr(code)
  await linking.service.admin.untilState(refused.id, 'connected')
  await network.misbehave({ kind: 'refuse_logins', reason: '403', count: 1, account: phone })
  await network.misbehave({ kind: 'cut', account: phone })
  await linking.service.admin.untilState(refused.id, 'stopped')
  return [
    { name: '15-linking', path: `/instances/${id}`, prepare: page => page.getByTestId('qr').waitFor() },
    {
      name: '18-pairing-code',
      path: `/instances/${byCode.id}`,
      prepare: async (page, say) => {
        await page.locator('label', { hasText: say('Pairing code') }).click()
        if (await page.getByLabel(say('Your number')).isVisible()) {
          await page.getByLabel(say('Your number')).fill('5511987654321')
          await page.getByRole('button', { name: say('Get a pairing code') }).click()
        }
        await page.getByText(/^[A-Z0-9]{4}-[A-Z0-9]{4}$/).waitFor()
      },
    },
    {
      name: '19-stopped',
      path: `/instances/${refused.id}`,
      prepare: (page, say) => page.getByRole('button', { name: say('Try again now') }).waitFor(),
    },
  ]
}

/** A number that is down, a webhook that fails, and the alerts about them. */
async function troubledScenes(): Promise<Scene[]> {
  const { admin } = linking.service
  for (const rule of ['number_down', 'webhook_failing'])
    await change(linking, 'PUT', `/alerts/rules/${rule}`, { afterMinutes: 0 })
  await change(linking, 'POST', '/alerts/targets', { name: 'Phone', channel: 'ntfy', url: linking.receiver.url })
  const { id, token } = await admin.createConnected('Padaria Central')
  linking.receiver.answerWith(({ headers }) => ({
    kind: 'status',
    status: headers['x-service-event'] === undefined ? 200 : 503,
    body: '{"error":"database is starting up"}',
  }))
  await linking.service.instance(id, token).setWebhook(linking.receiver.url)
  for (const [index, text] of ORDERS.entries())
    await linking.service.instance(id, token).send(`551198765432${index}`, text)
  await until('events given up', async () => (await admin.listEvents(id, '?state=exhausted')).length >= 4)
  return [
    { name: '28-attention', path: '/', prepare: page => page.getByRole('region').getByText('Barber').waitFor() },
    {
      name: '29-problems',
      path: '/alerts',
      prepare: page => page.getByText('Padaria Central').first().waitFor(),
      whole: true,
    },
    {
      name: '30-failing',
      path: `/instances/${id}`,
      prepare: page => page.getByRole('alert').first().waitFor(),
      whole: true,
    },
    {
      name: '31-failing-webhook',
      path: `/instances/${id}/webhook`,
      prepare: page => page.getByText(linking.receiver.url).first().waitFor(),
    },
    {
      name: '32-given-up',
      path: `/instances/${id}/events`,
      prepare: page => page.getByText('message.').first().waitFor(),
    },
  ]
}

async function change(on: PanelHarness, method: string, path: string, body: object): Promise<void> {
  const answer = await fetch(`${on.url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${on.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
}

async function shoot(on: PanelHarness, scenes: readonly Scene[]): Promise<void> {
  for (const [look, options] of Object.entries(LOOKS)) {
    const page = await on.openSignedIn('/', options)
    const words = await LANGUAGES.find(({ code }) => code === options.locale)?.load()
    const say = (text: string) => (words && translate(text, en, words)) ?? text
    for (const { name, path, prepare, whole = false } of scenes) {
      await page.goto(on.url + path)
      await prepare?.(page, say)
      // Drawers and dialogs slide in.
      await page.waitForTimeout(SETTLE_MS)
      await page.screenshot({ path: join(FOLDER, `${name}-${look}.png`), fullPage: whole })
    }
    await page.context().close()
  }
}

/** Finds the English text among the panel's texts, which have the same shape in every language. */
function translate(text: string, english: object, words: object): string | undefined {
  for (const [key, value] of Object.entries(english)) {
    const other = (words as Record<string, unknown>)[key]
    if (value === text) return String(other)
    const found = typeof value === 'object' && value !== null ? translate(text, value, other as object) : undefined
    if (found !== undefined) return found
  }
  return undefined
}
