import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { Page } from 'playwright-core'
import { newMessageId, newWhatsappId } from '../../src/domain/ids.ts'
import { ensurePanelBuilt } from './ensure-built.ts'
import { MAX_FIRST_LOAD_KB, measureFirstLoad } from './first-load.ts'
import { PanelHarness } from './harness.ts'
import { seedInstances } from './seed.ts'

/**
 * Measures the response times of the panel with 1,000 instances and 100,000 messages in the browser: `npm run measure:panel`.
 * Each response time with a limit is the median of five rounds, so that other programs affect it little.
 */

const INSTANCES = 1_000
const MESSAGES = 100_000
const WITHIN_MS = 100
const ROUNDS = 5
/** How long the search field waits for more typing. */
const SEARCH_PAUSE_MS = 250

ensurePanelBuilt()
await using harness = await PanelHarness.start({ RETENTION_DAYS: '3650' })
const { service } = harness
const { id } = await service.admin.createConnected('Busy')
await service.kill('SIGTERM')
await seed(service.dataDir, id)
await service.start()

const page = await harness.open('/sign-in', { viewport: { width: 1280, height: 860 } })
const loaded = await measureFirstLoad(page)
await page.locator('input[type="password"]').waitFor()
await page.goto('about:blank')
const list = await harness.openSignedIn('/')
await list.getByRole('row').nth(5).waitFor()

report('First load: compressed script and style', loaded.first / 1024, MAX_FIRST_LOAD_KB, 'KB')
report('With the pages read ahead: compressed script', loaded.allScript / 1024, 275, 'KB')
report(
  'Instances: scroll, longest frame',
  await middle(round => longestFrame(list, round % 2 === 0 ? 1 : -1)),
  WITHIN_MS,
)
report('Instances: from a search typed to its rows', await middle(round => searched(list, 775 + round)), WITHIN_MS)
report(
  'Instances: from a click to the instance',
  await middle(async () => {
    await list.goto(harness.url)
    await list.getByRole('row').nth(5).waitFor()
    return timed(list, '#content a[data-row-link]', 'nav a[aria-current]')
  }),
  WITHIN_MS,
)

await list.goto(`${harness.url}/instances/${id}/messages`)
await list.getByRole('row').nth(5).waitFor()
const scrolled = await scrollToEnd(list)
console.log(`Messages: ${scrolled.rows} rows reached in ${(scrolled.ms / 1000).toFixed(1)} s of scrolling`)
report(
  'Messages: scroll at the end, longest frame',
  await middle(round => longestFrame(list, round % 2 === 0 ? -1 : 1)),
  WITHIN_MS,
)
report(
  'Messages: from a click to the open message',
  await middle(async () => {
    await list.keyboard.press('Escape')
    await list.getByRole('dialog').waitFor({ state: 'detached' })
    return timed(list, 'a[data-row-link]', '[role="dialog"]')
  }),
  WITHIN_MS,
)
await list.keyboard.press('Escape')
const arrived = Date.now()
const { token } = JSON.parse(await (await post(`/instances/${id}/token`)).text()).data
await service.instance(id, token).send('5511987654321', 'The newest of all')
await list.evaluate(() => window.scrollTo(0, 0))
await list.getByText('The newest of all').waitFor()
console.log(`Messages: a new one is on top ${Date.now() - arrived} ms after it was sent, with all rows loaded`)

function post(path: string): Promise<Response> {
  return fetch(`${harness.url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.adminKey}` },
  })
}

function report(what: string, value: number, limit: number, unit = 'ms'): void {
  if (value > limit) process.exitCode = 1
  console.log(`${value <= limit ? '✓' : '✗'} ${what}: ${value.toFixed(0)} ${unit} (limit ${limit})`)
}

async function middle(measure: (round: number) => Promise<number>): Promise<number> {
  const figures: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) figures.push(await measure(round))
  return figures.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)]!
}

async function seed(dataDir: string, busyId: string): Promise<void> {
  await seedInstances(dataDir, INSTANCES - 1, 'whatsapp', index => `Instance number ${index}`)
  const db = new Sqlite(join(dataDir, 'pombal.db'))
  const insert = db.prepare(
    `insert into messages (instance_id, id, recipient, text, whatsapp_id, state, created_at, sent_at, delivered_at, read_at)
     values (?, ?, ?, ?, ?, 'read', ?, ?, ?, ?)`,
  )
  db.transaction(() => {
    for (let index = 0; index < MESSAGES; index += 1) {
      const at = Date.now() - (MESSAGES - index) * 1_000
      const to = `55119${String(index % 100_000_000).padStart(8, '0')}`
      insert.run(busyId, newMessageId(at), to, `Message number ${index}`, newWhatsappId(), at, at, at, at)
    }
  })()
  db.close()
}

/** The longest time between two frames while the page scrolls by a screen at a time. */
function longestFrame(on: Page, direction = 1): Promise<number> {
  return on.evaluate(async sign => {
    let longest = 0
    let last = performance.now()
    for (let step = 0; step < 40; step += 1) {
      window.scrollBy(0, sign * 700)
      await new Promise(resolve => requestAnimationFrame(resolve))
      const now = performance.now()
      longest = Math.max(longest, now - last)
      last = now
    }
    return longest
  }, direction)
}

/** From the key that ends a search to the frame with its rows, without the pause that waits for more typing. */
async function searched(on: Page, number: number): Promise<number> {
  await on.evaluate(() => {
    window.scrollTo(0, 0)
    performance.clearMarks()
    document.querySelector('input[type="search"]')!.addEventListener('input', () => performance.mark('typed'), {
      once: true,
    })
  })
  const found = on.evaluate(async wanted => {
    const rows = () => [...document.querySelectorAll('[role="row"]')].slice(1)
    while (rows().length === 0 || !rows().every(row => row.textContent!.includes(wanted)))
      await new Promise(resolve => requestAnimationFrame(resolve))
    return performance.now() - performance.getEntriesByName('typed')[0]!.startTime
  }, `number ${number}`)
  await on.getByRole('searchbox').fill(`number ${number}`)
  return (await found) - SEARCH_PAUSE_MS
}

/** From a click on the first of `selector` to the frame that shows `shown`. */
function timed(on: Page, selector: string, shown: string): Promise<number> {
  return on.evaluate(
    async ([clicked, wanted]) => {
      const visible = [...document.querySelectorAll<HTMLElement>(clicked!)].find(element => {
        const { top } = element.getBoundingClientRect()
        return top > 100 && top < innerHeight
      })
      const from = performance.now()
      visible!.click()
      while (!document.querySelector(wanted!)) await new Promise(resolve => requestAnimationFrame(resolve))
      return performance.now() - from
    },
    [selector, shown] as const,
  )
}

function scrollToEnd(on: Page): Promise<{ rows: number; ms: number }> {
  return on.evaluate(async () => {
    const from = performance.now()
    const rows = () => Number([...document.querySelectorAll('[aria-rowindex]')].at(-1)?.getAttribute('aria-rowindex'))
    for (;;) {
      window.scrollTo(0, document.documentElement.scrollHeight)
      await new Promise(resolve => requestAnimationFrame(resolve))
      const table = document.querySelector('[role="table"]')
      if (table?.getAttribute('aria-rowcount') !== '-1' && rows() >= 100_000) break
      if (performance.now() - from > 240_000) break
    }
    return { rows: rows(), ms: performance.now() - from }
  })
}
