import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { en, type Words } from '../../panel/src/i18n/en.ts'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { until } from '../until.ts'
import { problemsOf } from './accessibility.ts'
import { ADMIN_KEY, PanelHarness } from './harness.ts'

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

/** Their text is English in every language. */
const GUIDES = ['/guides', '/guides/operations']

/** Pages that are shown without a session too. */
const OUTSIDE = ['/sign-in', '/sign-in/oidc', '/invitation', '/nowhere']

/** The dialogs, by page and by the button that opens them. */
const DIALOGS: readonly (readonly [path: string, button: (words: Words) => string])[] = [
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

describe.each(
  LANGUAGES.flatMap(language => (['light', 'dark'] as const).map(colorScheme => ({ ...language, colorScheme }))),
)('$code, $colorScheme', ({ code: locale, load, colorScheme }) => {
  test('axe finds nothing on any page', async () => {
    const page = await harness.openSignedIn('/', { locale, colorScheme, reducedMotion: 'reduce' })
    const problems: string[] = []
    for (const path of [...paths, ...GUIDES, ...OUTSIDE]) {
      await show(page, path)
      problems.push(...(await problemsOf(page)).map(problem => `${path} ${problem}`))
    }
    expect(problems).toEqual([])
  })

  test('axe finds nothing in the reference', async () => {
    const page = await harness.open('/docs/', { locale, colorScheme, reducedMotion: 'reduce' })
    await page.locator('.scalar-code-copy').first().waitFor({ state: 'attached' })
    // It first draws itself in light colours and without its examples.
    let problems: string[] = []
    await until('a reference without problems', async () => {
      problems = await problemsOf(page)
      return problems.length === 0
    }).catch(() => undefined)
    expect(problems).toEqual([])
  })

  test('axe finds nothing in any dialog', async () => {
    const words = await load()
    const page = await harness.openSignedIn('/', { locale, colorScheme, reducedMotion: 'reduce' })
    const problems: string[] = []
    for (const [path, buttonOf] of DIALOGS) {
      const button = buttonOf(words)
      await show(page, path === '/' ? path : `/instances/${instanceId}${path}`)
      await page.getByRole('button', { name: button }).first().click()
      await page.getByRole('dialog').waitFor()
      problems.push(...(await problemsOf(page)).map(problem => `${button} ${problem}`))
    }
    expect(problems).toEqual([])
  })
})

test.each(LANGUAGES)('$code: no page is wider than a screen of 360 pixels', async ({ code: locale }) => {
  const page = await harness.openSignedIn('/', { locale, viewport: { width: 360, height: 740 } })
  for (const path of [...paths, ...GUIDES]) {
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

test('whatever a mouse can click on a page or in a dialog, the keyboard reaches', async () => {
  const page = await harness.openSignedIn('/')
  const unreachable: string[] = []
  for (const path of [...paths, '/guides', '/sign-in']) {
    await show(page, path)
    for (const summary of await page.locator('summary:visible').all()) await summary.press('Enter')
    unreachable.push(...(await mouseOnly(page)).map(element => `${path} ${element}`))
  }
  for (const [path, buttonOf] of DIALOGS) {
    await show(page, path === '/' ? path : `/instances/${instanceId}${path}`)
    await page
      .getByRole('button', { name: buttonOf(en) })
      .first()
      .press('Enter')
    await page.getByRole('dialog').waitFor()
    unreachable.push(...(await mouseOnly(page)).map(element => `${buttonOf(en)} ${element}`))
  }
  expect(unreachable).toEqual([])
})

test('in dark colours, a secondary button stands out from its card and from one that is disabled', async () => {
  const page = await harness.openSignedIn('/settings', { colorScheme: 'dark' })
  const button = page.getByRole('button', { name: 'End all other sessions' })
  await button.waitFor()
  const lightness = (selector: string) =>
    page
      .locator(selector)
      .first()
      .evaluate(element => {
        const [red = 0, green = 0, blue = 0] = getComputedStyle(element)
          .backgroundColor.match(/[0-9.]+/g)!
          .map(Number)
        return red + green + blue
      })
  const [enabled, disabled, card] = await Promise.all([
    lightness('section button[data-variant="default"]:not([data-disabled])'),
    lightness('section button[data-disabled]'),
    lightness('section'),
  ])
  expect(enabled).toBeGreaterThan(card + 40)
  expect(enabled).toBeGreaterThan(disabled + 20)
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
    for (const path of [...paths, ...GUIDES, ...more, '/instances/inst_nowhere', '/sign-in']) {
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
  await page.locator('h1').first().waitFor()
  if (path.includes('open=')) await page.getByRole('dialog').getByRole('listitem').first().waitFor()
  await page.getByText('Loading…').first().waitFor({ state: 'detached' })
}

/** The panel's own texts that contain English words. Code, guides and message texts are left out. */
function englishOn(page: Page): Promise<string[]> {
  return page.evaluate(written => {
    const english = /\b(the|and|not|was|were|with|is|are|to|of|from|this|that|your|has|have|been|will|you|it)\b/i
    const said: string[] = []
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      if (!text.parentElement?.closest('code, pre, blockquote, script, style, noscript, article[lang="en"]'))
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

/** Elements that show the hand of a mouse, but cannot have the focus. The arrow keys reach tabs and options. */
function mouseOnly(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const hasHand = (element: Element | null) => element !== null && getComputedStyle(element).cursor === 'pointer'
    const isReached = (element: Element) => {
      const controls = 'a[href], button, input, select, textarea, summary, label, [tabindex="0"]'
      const control = element.closest(controls) ?? element.querySelector(controls)
      if (element.closest('[role="tab"], [role="option"]')) return true
      if (control === null) return false
      if (control.matches('label')) return true
      return control instanceof HTMLElement && control.tabIndex >= 0
    }
    return [...document.querySelectorAll('body *')]
      .filter(element => hasHand(element) && !hasHand(element.parentElement) && element.getClientRects().length > 0)
      .filter(element => !isReached(element))
      .map(element => element.outerHTML.slice(0, 120))
  })
}
