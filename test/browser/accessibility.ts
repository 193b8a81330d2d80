import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The rules whose outcome depends on colours. */
export const COLOUR_RULES = ['color-contrast', 'link-in-text-block']

/** The violated rules and their elements. @param rules those to check; by default, the default rules of axe */
export async function problemsOf(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Evaluated by the debugger, which the policy of the page does not restrict.
  await page.evaluate(AXE)
  return page.evaluate(async runOnly => {
    const { axe } = window as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } }
    const { violations } = await axe.run(runOnly ? { runOnly } : {})
    return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
  }, rules)
}

interface Violation {
  id: string
  nodes: { target: string[] }[]
}
