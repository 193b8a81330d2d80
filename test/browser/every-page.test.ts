import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { until } from '../until.ts'
import { ADMIN_KEY, PanelHarness } from './harness.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** The text that the send form suggests. */
const SENT_BY_KEYBOARD = 'Hello from Pombal!'
const HOSTILE = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>{{7*7}}'--`

let harness: PanelHarness
let instanceId: string
let paths: string[]
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
  const { id, token } = await harness.service.admin.createConnected(HOSTILE.slice(0, 90))
  instanceId = id
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
  paths = [
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
})
afterAll(() => harness.dispose())

test('names, texts and responses that contain markup are shown as text', async () => {
  const page = await harness.openSignedIn('/')
  for (const path of paths) {
    await show(page, path)
    const open = path.includes('open=') ? page.getByRole('dialog') : page
    for (const summary of await open.locator('summary').all()) await summary.click()
    expect(await page.evaluate(() => 'hacked' in window), path).toBe(false)
    expect(await page.locator('img[src="x"]').count(), path).toBe(0)
  }
  expect(harness.complaints).toEqual([])
})

const TRANSLATIONS = LANGUAGES.filter(({ code }) => code !== 'en')

/** The dialogs, by page and by the button that opens them. */
const DIALOGS: readonly (readonly [path: string, button: string])[] = [
  ['/', 'New instance'],
  ['/messages', 'Send a message'],
  ['/events', 'Redeliver…'],
  ['/phone', 'Write as a contact'],
  ['/webhook', 'New secret'],
  ['/webhook', 'Add an endpoint'],
  ['/', 'Find anything'],
  ['/settings', 'New token'],
  ['/settings', 'New key'],
  ['/settings', 'Delete the instance'],
]

describe.each(['light', 'dark'] as const)('%s', colorScheme => {
  test('axe finds no serious problem on any page or dialog', async () => {
    const page = await harness.openSignedIn('/', { colorScheme, reducedMotion: 'reduce' })
    const problems: string[] = []
    const judge = async (what: string) => {
      for (const problem of await seriousProblems(page)) problems.push(`${what} ${problem}`)
    }
    for (const path of [...paths, '/sign-in', '/invitation']) {
      await show(page, path)
      await judge(path)
    }
    for (const [path, button] of DIALOGS) {
      await show(page, path === '/' ? path : `/instances/${instanceId}${path}`)
      await page.getByRole('button', { name: button }).click()
      await page.getByRole('dialog').waitFor()
      await judge(button)
    }
    expect(problems).toEqual([])
  })
})

test.each(LANGUAGES)('$code: no page is wider than a screen of 360 pixels', async ({ code: locale }) => {
  const page = await harness.openSignedIn('/', { locale, viewport: { width: 360, height: 740 } })
  for (const path of paths) {
    await show(page, path)
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(360)
  }
})

test("the language is the browser's, until somebody chooses another one", async () => {
  const page = await harness.openSignedIn('/', { locale: 'pt-BR' })
  await page.getByRole('heading', { name: 'Instâncias' }).waitFor()
  expect(await page.locator('html').getAttribute('lang')).toBe('pt-BR')
  await page.getByRole('button', { name: 'Idioma' }).click()
  await page.getByRole('menuitem', { name: 'English' }).click()
  await page.getByRole('heading', { name: 'Instances' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Instances' }).waitFor()
  expect(await page.locator('html').getAttribute('lang')).toBe('en')
})

test('a page that is loading says so in words', async () => {
  const page = await harness.openSignedIn('/')
  let release = () => {}
  const gate = () => new Promise<void>(resolve => (release = resolve))
  for (const path of paths) {
    await page.goto('about:blank')
    const held = gate()
    await page.route(/\/admin\/v1\/(accounts|alerts|audit|instances|sessions)/, async route => {
      await held
      await route.continue().catch(() => undefined)
    })
    await page.goto(harness.url + path)
    await page.getByText('Loading…').first().waitFor()
    const wordless = await page.locator('.mantine-Loader-root').evaluateAll(loaders => {
      return loaders.filter(loader => !loader.parentElement?.textContent?.trim()).length
    })
    expect(wordless, path).toBe(0)
    release()
    await page.getByText('Loading…').first().waitFor({ state: 'detached' })
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  }
})

test("times are shown in the reader's time zone, with the exact UTC time in the tooltip", async () => {
  const page = await harness.openSignedIn(`/instances/${instanceId}/messages`, { timezoneId: 'America/Sao_Paulo' })
  const time = page.getByRole('row').nth(1).locator('time')
  await time.waitFor()
  const at = new Date((await time.getAttribute('datetime'))!)
  const local = at.toLocaleTimeString('en-GB', { timeZone: 'America/Sao_Paulo' })
  expect(await time.textContent()).toContain(local)
  expect(await time.getAttribute('title')).toBe(`${at.toISOString().replace('T', ' ').replace('Z', '')} UTC`)
})

test('the keyboard alone is enough to sign in, send a message and see it read', async () => {
  const page = await harness.open('/sign-in')
  await page.locator('input[type="password"]:focus').waitFor()
  await page.keyboard.type(ADMIN_KEY)
  await page.keyboard.press('Enter')
  await page.getByRole('table').waitFor()
  await tabTo(page, 'a[data-row-link]')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
  await tabTo(page, 'form button[type="submit"]')
  await page.keyboard.press('Enter')
  await page.getByText('The recipient has opened it.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await tabTo(page, 'a[data-row-link]')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
})

test.each(TRANSLATIONS)(
  '$code: the panel contains no English, not even in the reason for a failure',
  async language => {
    const words = await language.load()
    const { admin } = harness.service
    const { id, token } = await admin.createConnected('Loja')
    const instance = harness.service.instance(id, token)
    await instance.setWebhook('http://127.0.0.1:1/nobody')
    await instance.send('15005550001', 'Bom dia')
    await instance.send('15005550004', 'Bom dia')
    const given = await until('events given up', async () => {
      const events = await admin.listEvents(id, '?state=exhausted')
      return events.length === 2 && events
    })
    const at = `/instances/${id}`
    const page = await harness.openSignedIn('/', { locale: language.code })
    const more = given.flatMap(({ id: event, messageId }) => [
      `${at}/events?open=${event}`,
      `${at}/messages?open=${messageId}`,
    ])
    for (const path of [...paths, ...more, '/instances/inst_nowhere', '/sign-in']) {
      await show(page, path)
      expect(await englishOn(page), path).toEqual([])
    }
    await show(page, `${at}/webhook`)
    await page.getByRole('button', { name: words.webhook.test }).click()
    await page.getByText(words.webhook.testFailed).waitFor()
    expect(await englishOn(page)).toEqual([])
    await page.getByRole('button', { name: words.endpoints.edit }).click()
    await page.getByLabel(words.webhook.url).fill('http://169.254.169.254/')
    await page.getByRole('button', { name: words.webhook.save }).click()
    await page.getByText(words.problems.fields['url'] ?? '').waitFor()
    expect(await englishOn(page)).toEqual([])
    await show(page, `${at}/phone`)
    await page.getByRole('switch').click({ force: true })
    await show(page, at)
    await page.getByText(`${words.connection.reason}: ${words.connection.reasons.unavailable}`).waitFor()
    expect(await englishOn(page)).toEqual([])
  },
)

test('an empty page says what to do next', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Empty')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByRole('button', { name: 'Link a number' }).waitFor()
  await page.getByRole('link', { name: 'Set a URL' }).waitFor()
  await show(page, `/instances/${id}/messages`)
  await page.getByText('Link a WhatsApp number first').waitFor()
  await show(page, `/instances/${id}/events`)
  await page.getByText('Events appear here as messages are sent').waitFor()
  await show(page, `/instances/${id}/messages?state=failed`)
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByText('No messages yet').waitFor()
  await show(page, '/?search=nobody')
  await page.getByRole('button', { name: 'Show all instances' }).click()
  await page.getByText('Empty').waitFor()
  await show(page, '/instances/inst_nowhere')
  await page.getByRole('link', { name: 'Go to the instances' }).waitFor()
})

async function show(page: Page, path: string): Promise<void> {
  await page.goto(harness.url + path)
  await page.locator('h1').waitFor()
  if (path.includes('open=')) await page.getByRole('dialog').getByRole('listitem').first().waitFor()
  await page.getByText('Loading…').first().waitFor({ state: 'detached' })
}

/** The panel's own texts that contain English words. Code and message texts are left out. */
function englishOn(page: Page): Promise<string[]> {
  return page.evaluate(written => {
    const english = /\b(the|and|not|was|were|with|is|are|to|of|from|this|that|your|has|have|been|will|you|it)\b/i
    const said: string[] = []
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (!text.parentElement?.closest('code, pre, blockquote, script, style, noscript'))
        said.push(text.nodeValue ?? '')
    }
    for (const element of document.querySelectorAll('[aria-label], [title], [placeholder]')) {
      for (const name of ['aria-label', 'title', 'placeholder']) said.push(element.getAttribute(name) ?? '')
    }
    // The inbox also names it in labels.
    return said.filter(words => english.test(words.replace(written, '')))
  }, SENT_BY_KEYBOARD)
}

async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    if (await page.evaluate(wanted => document.activeElement?.matches(wanted) === true, selector)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`The keyboard does not reach ${selector}.`)
}

/** The violated rules and their elements. */
async function seriousProblems(page: Page): Promise<string[]> {
  // Evaluated by the debugger, which the policy of the page does not restrict.
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }
    const { violations } = await axe.run()
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
  })
}

interface Violation {
  id: string
  impact: string
  nodes: { target: string[] }[]
}
