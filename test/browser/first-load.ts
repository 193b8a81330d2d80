import { brotliCompressSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { CONDITION_WITHIN_MS } from '../deadlines.ts'
import { signIn } from './harness.ts'

/** The most that a first visit may load. */
export const MAX_FIRST_LOAD_KB = 250

/**
 * Signs in as a first visitor, in a browser context without a cache.
 * @param on a page of the panel
 * @returns the compressed bytes of scripts and styles until the instances are shown, and of all scripts once every page is read
 * ahead
 */
export async function measureFirstLoad(on: Page): Promise<{ first: number; allScript: number }> {
  const sizes = new Map<string, Promise<number>>()
  const ahead = new Set<string>()
  const context = await on.context().browser()!.newContext()
  context.setDefaultTimeout(CONDITION_WITHIN_MS)
  const fresh = await context.newPage()
  // On a slow machine, reading ahead begins before the instances are shown. It begins with the script of the settings.
  let isAhead = false
  fresh.on('request', request => {
    const { pathname } = new URL(request.url())
    isAhead ||= pathname.startsWith('/assets/settings-')
    if (isAhead) ahead.add(pathname)
  })
  fresh.on('response', response => {
    const { pathname } = new URL(response.url())
    if (/\.(js|css)$/.test(pathname))
      sizes.set(
        pathname,
        response.body().then(body => brotliCompressSync(body).length),
      )
  })
  const sum = async (isCounted: (path: string) => boolean) => {
    const counted = [...sizes].filter(([path]) => isCounted(path)).map(([, size]) => size)
    return (await Promise.all(counted)).reduce((total, size) => total + size, 0)
  }
  const readAhead = fresh.waitForResponse(/\/assets\/instance-settings-.*\.js$/)
  await fresh.goto(new URL('/sign-in', on.url()).href)
  await signIn(fresh)
  await fresh.getByRole('table').waitFor()
  await readAhead
  await fresh.waitForLoadState('networkidle')
  const first = await sum(path => !ahead.has(path))
  const allScript = await sum(path => path.endsWith('.js'))
  await context.close()
  return { first, allScript }
}
