import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../until.ts'
import { ADMIN_KEY, Stage } from './stage.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const HOSTILE = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>{{7*7}}'--`

let stage: Stage
let instanceId: string
let paths: string[]
beforeAll(async () => {
  stage = await Stage.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
  const { id, token } = await stage.service.admin.createConnected(HOSTILE.slice(0, 90))
  instanceId = id
  stage.receiver.answerWith({ kind: 'status', status: 500, body: HOSTILE })
  const instance = stage.service.instance(id, token)
  await instance.setWebhook(stage.receiver.url)
  const message = await instance.send('5511987654321', HOSTILE)
  await stage.service.admin.writeAsContact(id, { from: '5511987654321', text: HOSTILE, name: HOSTILE.slice(0, 25) })
  const event = await until('an event given up', async () => {
    return (await stage.service.admin.listEvents(id, '?state=exhausted')).find(
      ({ messageId }) => messageId === message.id,
    )
  })
  const at = `/instances/${id}`
  paths = [
    '/',
    '/settings',
    at,
    `${at}/messages`,
    `${at}/messages?open=${message.id}`,
    `${at}/events`,
    `${at}/events?open=${event.id}`,
    `${at}/webhook`,
    `${at}/phone`,
    `${at}/settings`,
  ]
})
afterAll(() => stage.dispose())

test('names, texts and responses that look like code stay text', async () => {
  const page = await stage.openSignedIn('/')
  for (const path of paths) {
    await show(page, path)
    for (const summary of await page.locator('summary').all()) await summary.click()
    expect(await page.evaluate(() => 'hacked' in window), path).toBe(false)
    expect(await page.locator('img[src="x"]').count(), path).toBe(0)
  }
  expect(stage.complaints).toEqual([])
})

describe.each(['light', 'dark'] as const)('%s', colorScheme => {
  test('axe finds nothing serious on any page', async () => {
    const page = await stage.openSignedIn('/', { colorScheme, reducedMotion: 'reduce' })
    const problems: string[] = []
    for (const path of [...paths, '/sign-in']) {
      await show(page, path)
      for (const problem of await seriousProblems(page)) problems.push(`${path} ${problem}`)
    }
    expect(problems).toEqual([])
  }, 120_000)
})

test('no page is wider than a screen of 360 pixels', async () => {
  const page = await stage.openSignedIn('/', { viewport: { width: 360, height: 740 } })
  for (const path of paths) {
    await show(page, path)
    expect(await page.evaluate(() => document.documentElement.scrollWidth), path).toBeLessThanOrEqual(360)
  }
})

test('both languages, as the browser asks for and as somebody chooses', async () => {
  const page = await stage.openSignedIn('/', { locale: 'pt-BR' })
  await page.getByRole('heading', { name: 'Instâncias' }).waitFor()
  expect(await page.locator('html').getAttribute('lang')).toBe('pt-BR')
  await page.getByRole('button', { name: 'Idioma' }).click()
  await page.getByRole('menuitem', { name: 'English' }).click()
  await page.getByRole('heading', { name: 'Instances' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Instances' }).waitFor()
  expect(await page.locator('html').getAttribute('lang')).toBe('en')
})

test('times are in the zone of the reader, with the exact UTC beside', async () => {
  const page = await stage.openSignedIn(`/instances/${instanceId}/messages`, { timezoneId: 'America/Sao_Paulo' })
  const time = page.getByRole('row').nth(1).locator('time')
  await time.waitFor()
  const at = new Date((await time.getAttribute('datetime'))!)
  const local = at.toLocaleTimeString('en-GB', { timeZone: 'America/Sao_Paulo' })
  expect(await time.textContent()).toContain(local)
  expect(await time.getAttribute('title')).toBe(`${at.toISOString().replace('T', ' ').replace('Z', '')} UTC`)
})

test('with the keyboard alone: sign in, send a message, see it read', async () => {
  const page = await stage.open('/sign-in')
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

async function show(page: Page, path: string): Promise<void> {
  await page.goto(stage.url + path)
  await page.locator('h1').waitFor()
  if (path.includes('open=')) await page.getByRole('dialog').getByRole('listitem').first().waitFor()
  await page.getByText('Loading…').waitFor({ state: 'detached' })
}

async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    if (await page.evaluate(wanted => document.activeElement?.matches(wanted) === true, selector)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`The keyboard does not reach ${selector}.`)
}

/** Which rules are broken, and where. */
async function seriousProblems(page: Page): Promise<string[]> {
  // Evaluated by the debugger, which no policy of the page binds.
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
