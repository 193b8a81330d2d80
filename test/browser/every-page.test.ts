import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { until } from '../until.ts'
import { COLOUR_RULES, problemsOf } from './accessibility.ts'
import { PanelHarness } from './harness.ts'
import { createPages, DIALOGS, show } from './pages.ts'

/** The text that the send form suggests. */
const SUGGESTED = 'Hello from Pombal!'
let harness: PanelHarness
let instanceId: string
let paths: string[]
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
  ;({ instanceId, paths } = await createPages(harness))
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

const WIDE = { width: 1280, height: 860 }
const NARROW = { width: 360, height: 740 }

const TRANSLATIONS = LANGUAGES.filter(({ code }) => code !== 'en')

/** Their text is English in every language. */
const GUIDES = ['/guides', '/guides/operations']

/** Pages that are shown without a session too. */
const OUTSIDE = ['/sign-in', '/sign-in/oidc', '/invitation', '/nowhere']

describe.each(LANGUAGES)('$code', ({ code: locale, load }) => {
  /** What axe finds in light colours, and in dark ones in one language, because colours do not depend on words. */
  async function axeProblems(page: Page): Promise<string[]> {
    const light = await problemsOf(page)
    return locale === 'en' ? [...light, ...(await problemsInTheDark(page))] : light
  }

  test(
    'every page suits a narrow screen and assistive technology, and shows markup in names and texts as text',
    async () => {
      const page = await harness.openSignedIn('/', { locale, viewport: NARROW, reducedMotion: 'reduce' })
      const problems: string[] = []
      for (const path of [...paths, ...GUIDES, ...OUTSIDE]) {
        await page.setViewportSize(NARROW)
        await show(harness, page, path)
        const width = await page.evaluate(() => document.documentElement.scrollWidth)
        if (width > NARROW.width) problems.push(`${path} is ${width} pixels wide`)
        await page.setViewportSize(WIDE)
        await drawn(page)
        if (locale !== 'en') problems.push(...(await englishOn(page)).map(text => `${path} English: ${text}`))
        problems.push(...(await axeProblems(page)).map(problem => `${path} ${problem}`))
        const open = path.includes('open=') ? page.getByRole('dialog') : page
        for (const summary of await open.locator('summary').all()) await summary.click()
        if (await page.evaluate(() => 'hacked' in window)) problems.push(`${path} ran markup`)
        if ((await page.locator('img[src="x"]').count()) > 0) problems.push(`${path} drew markup`)
      }
      expect(problems).toEqual([])
      expect(harness.complaints).toEqual([])
    },
    LONG_TEST_WITHIN_MS,
  )

  test('axe finds nothing in any dialog', async () => {
    const words = await load()
    const page = await harness.openSignedIn('/', { locale, reducedMotion: 'reduce' })
    const problems: string[] = []
    for (const [path, buttonOf] of DIALOGS) {
      const button = buttonOf(words)
      await show(harness, page, path === '/' ? path : `/instances/${instanceId}${path}`)
      await page.getByRole('button', { name: button }).first().click()
      await page.getByRole('dialog').waitFor()
      // The button's tooltip is outside the dialog. It opens after the pointer arrives, and stays until the pointer leaves.
      await page.mouse.move(0, 0)
      await page.getByRole('tooltip').waitFor({ state: 'detached' })
      problems.push(...(await axeProblems(page)).map(problem => `${button} ${problem}`))
    }
    expect(problems).toEqual([])
  })
})

/** The reference is the same in every language. */
test.each(['light', 'dark'] as const)('axe finds nothing in the reference in %s colours', async colorScheme => {
  const page = await harness.open('/docs/', { colorScheme, reducedMotion: 'reduce' })
  await page.locator('.scalar-code-copy').first().waitFor({ state: 'attached' })
  // It first draws itself in light colours and without its examples.
  let problems: string[] = []
  await until('a reference without problems', async () => {
    problems = await problemsOf(page)
    return problems.length === 0
  }).catch(() => undefined)
  expect(problems).toEqual([])
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

test('in dark colours, a secondary button stands out from its card and from one that is disabled', async () => {
  const page = await harness.openSignedIn('/settings', { colorScheme: 'dark' })
  const lightness = (selector: string) =>
    page
      .locator(selector)
      .first()
      .evaluate(element => {
        // A fourth number would make the colour transparent, so the other three would not be the visible colour.
        const numbers = getComputedStyle(element)
          .backgroundColor.match(/[0-9.]+/g)!
          .map(Number)
        return numbers.length === 3 ? numbers.reduce((sum, number) => sum + number) : 0
      })
  await page.getByRole('button', { name: 'End all other sessions' }).waitFor()
  const [enabled, disabled, card] = await Promise.all([
    lightness('section button[data-variant="default"]:not([data-disabled])'),
    lightness('section button[data-disabled]'),
    lightness('section'),
  ])
  expect(enabled).toBeGreaterThan(card + 40)
  expect(enabled).toBeGreaterThan(disabled + 20)
  await page.goto(`${harness.url}/instances/${instanceId}/webhook`)
  await page.getByRole('button', { name: 'Send a test event' }).waitFor()
  const light = await lightness('section button[data-variant="light"]')
  expect(light).toBeGreaterThan(card + 40)
  expect(light).toBeGreaterThan(disabled + 20)
})

test.each(TRANSLATIONS)(
  '$code: no English, not even in the reason for a failure',
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
    for (const path of [...more, '/instances/inst_nowhere']) {
      await show(harness, page, path)
      expect(await englishOn(page), path).toEqual([])
    }
    await show(harness, page, `${at}/webhook`)
    await page.getByRole('button', { name: words.webhook.test }).click()
    await page.getByText(words.webhook.testFailed).waitFor()
    expect(await englishOn(page)).toEqual([])
    await page.getByRole('button', { name: words.endpoints.edit }).click()
    await page.getByLabel(words.webhook.url).fill('http://169.254.169.254/')
    await page.getByRole('button', { name: words.webhook.save }).click()
    await page.getByText(words.problems.fields['url'] ?? '').waitFor()
    expect(await englishOn(page)).toEqual([])
    await show(harness, page, `${at}/phone`)
    await page.getByRole('switch').click({ force: true })
    await show(harness, page, at)
    await page.getByText(`${words.connection.reason}: ${words.connection.reasons.unavailable}`).waitFor()
    expect(await englishOn(page)).toEqual([])
  },
  LONG_TEST_WITHIN_MS,
)

test('an empty page says what to do next', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Empty')
  const page = await harness.openSignedIn(`/instances/${id}`)
  await page.getByRole('button', { name: 'Link a number' }).waitFor()
  await page.getByRole('link', { name: 'Set a URL' }).waitFor()
  await show(harness, page, `/instances/${id}/messages`)
  await page.getByText('Link a WhatsApp number first').waitFor()
  await show(harness, page, `/instances/${id}/events`)
  await page.getByText('Events appear here as messages are sent').waitFor()
  await show(harness, page, `/instances/${id}/messages?state=failed`)
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByText('No messages yet').waitFor()
  await show(harness, page, '/?search=nobody')
  await page.getByRole('button', { name: 'Show all instances' }).click()
  await page.getByText('Empty').waitFor()
  await show(harness, page, '/instances/inst_nowhere')
  await page.getByRole('link', { name: 'Go to the instances' }).waitFor()
})

/** What axe finds once the panel has changed to dark colours. It is in light colours again afterwards. */
async function problemsInTheDark(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.locator('html[data-mantine-color-scheme="dark"]').waitFor()
  await drawn(page)
  const problems = await problemsOf(page, COLOUR_RULES)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.locator('html[data-mantine-color-scheme="light"]').waitFor()
  return problems.map(problem => `in dark colours ${problem}`)
}

/** Waits until the page has drawn a change of its size or colours. */
function drawn(page: Page): Promise<void> {
  return page.evaluate(async () => {
    for (let frames = 0; frames < 2; frames += 1) await new Promise(requestAnimationFrame)
  })
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
    // Labels of the inbox contain the text as well.
    return said.filter(words => english.test(words.replace(written, '')))
  }, SUGGESTED)
}
