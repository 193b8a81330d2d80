import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { ADMIN_KEY, PanelHarness } from './harness.ts'
import { createPages, DIALOGS, show } from './pages.ts'

/** More than any page has. */
const MAX_TABS = 400

let harness: PanelHarness
let instanceId: string
let paths: string[]
beforeAll(async () => {
  harness = await PanelHarness.start({ WEBHOOK_RETRY_DELAYS_MS: '100' })
  ;({ instanceId, paths } = await createPages(harness))
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

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

test(
  'Tab reaches each control of each page and dialog, and the browser shows where it is; a mouse can click nothing else',
  async () => {
    const page = await harness.openSignedIn('/')
    const problems: string[] = []
    const check = async (where: string) => {
      problems.push(...(await walkThrough(page)).map(found => `${where}: ${found}`))
      for (const summary of await page.locator('summary:visible').all()) await summary.press('Enter')
      problems.push(...(await mouseOnly(page)).map(found => `${where}: only a mouse reaches ${found}`))
    }
    for (const path of [...paths, '/guides', '/sign-in', '/nowhere']) {
      await show(harness, page, path)
      if (path === '/') await page.getByRole('region', { name: /needs? attention/ }).waitFor()
      if (path.startsWith('/instances/')) await deliveryTrouble(page)
      // A conversation is shown a moment before its field takes the focus, which would look like the end of a round.
      if (path.includes('chat=')) await page.locator('textarea:focus').waitFor()
      await check(path)
    }
    for (const [path, buttonOf] of DIALOGS) {
      await show(harness, page, path === '/' ? path : `/instances/${instanceId}${path}`)
      await page
        .getByRole('button', { name: buttonOf(en) })
        .first()
        .press('Enter')
      // A dialog takes the focus a moment after it is shown. If that came during the walk, it would look like the end of a round.
      await page.locator('[role="dialog"] :focus').waitFor({ state: 'attached' })
      if (path !== '/') await deliveryTrouble(page)
      await check(buttonOf(en))
    }
    expect(problems).toEqual([])
  },
  LONG_TEST_WITHIN_MS,
)

/** Waits for the link that each page of an instance shows later than the rest: to the events that were given up. */
async function deliveryTrouble(page: Page): Promise<void> {
  await page.locator('a[href*="state=exhausted"]').first().waitFor({ state: 'attached' })
}

async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 60; presses += 1) {
    if (await page.evaluate(wanted => document.activeElement?.matches(wanted) === true, selector)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`The keyboard does not reach ${selector}.`)
}

/** Elements with a pointer cursor that cannot be focused. The arrow keys reach tabs and options. */
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

/**
 * Presses Tab until the focus is back at the first control. In a list of tabs or a group of radio buttons, Tab reaches
 * one control, and arrow keys reach the others.
 * @returns the controls that never had the focus, and those that had it without showing it
 */
async function walkThrough(page: Page): Promise<string[]> {
  const unmarked: string[] = []
  for (let presses = 0; presses < MAX_TABS; presses += 1) {
    await page.keyboard.press('Tab')
    const step = await page.evaluate(() => {
      const element = document.activeElement
      if (!(element instanceof HTMLElement) || element === document.body) return { isRound: false, problem: null }
      if (element.dataset['reached'] !== undefined) {
        // In a date, Tab moves through several fields of the same element.
        return { isRound: !element.matches('input[type="datetime-local"], input[type="time"]'), problem: null }
      }
      element.dataset['reached'] = ''
      const isMarked = (one: Element | null) => {
        if (one === null) return false
        const { outlineStyle, outlineWidth } = getComputedStyle(one)
        return outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0
      }
      // The focus of a hidden input is shown beside it, and the focus of a row's link by a frame in the row.
      const row = element.matches('[data-row-link]') ? element.closest('[role="row"]') : null
      const isShown =
        row === null
          ? [element, element.nextElementSibling, element.parentElement].some(isMarked)
          : getComputedStyle(row).boxShadow !== 'none'
      return { isRound: false, problem: isShown ? null : `no mark on ${element.outerHTML.slice(0, 160)}` }
    })
    if (step.problem !== null) unmarked.push(step.problem)
    if (step.isRound) break
  }
  const missed = await page.evaluate(() => {
    const within = document.querySelector('[role="dialog"]') ?? document.body
    const isInReachedGroup = (element: HTMLElement) => {
      if (element instanceof HTMLInputElement && element.type === 'radio')
        return document.querySelector(`input[name="${element.name}"][data-reached]`) !== null
      return element.closest('[role="tablist"]')?.querySelector('[data-reached]') != null
    }
    return [...within.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, summary')]
      .filter(element => element.checkVisibility({ visibilityProperty: true }))
      .filter(element => !element.matches(':disabled, [aria-hidden="true"], [data-reached]'))
      .filter(element => !isInReachedGroup(element))
      .map(element => `not reached: ${element.outerHTML.slice(0, 160)}`)
  })
  return [...unmarked, ...missed]
}
