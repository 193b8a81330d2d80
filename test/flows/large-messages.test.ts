import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, test } from 'vitest'
import { createDatabase } from '../databases/database.ts'
import { insertEvents } from '../databases/insert-events.ts'
import { ONE_STORE } from '../databases/one-store.ts'
import { TEST_WITHIN_MS } from '../deadlines.ts'
import { Service } from '../service.ts'

const MESSAGES = 200
const LARGE = 1_000_000
const ROUNDS = 5
const CHAT = '5511987654321'
/** The extra time for an answer of 1 MiB. All texts together would take many times as long. */
const SLACK_MS = 1_000
/** Real time: another caller asks while a list is under way, and its delay is measured. */
const PAUSE_MS = 5

interface Listed {
  data: { id: string; text: string }[]
  nextCursor: string | null
}

test.each(ONE_STORE)(
  'on %s, lists of messages with 1 MB texts and the erasure of their files take about as long as with small ones, for the caller and for others',
  async store => {
    const database = await createDatabase(store, inject('postgresUrl'))
    const folder = mkdtempSync(join(tmpdir(), 'pombal-large-'))
    const media = { MEDIA_URL: pathToFileURL(folder).href, RATE_LIMIT_PER_MINUTE: '1000' }
    const service = new Service({ env: { ...database.env, ...media } })
    try {
      await service.start()
      const call = async (key: string, path: string, method = 'GET'): Promise<unknown> => {
        const response = await fetch(`${service.url}${path}`, { method, headers: { authorization: `Bearer ${key}` } })
        expect(response.status).toBe(200)
        return response.json()
      }
      const fill = async (length: number) => {
        const { id, token } = await service.admin.createInstance('whatsapp')
        for (const statement of insertEvents(store, id, { count: MESSAGES, length, form: 'new' }))
          await database.run(statement, service.dataDir)
        return { id, token }
      }
      const measure = async ({ id, token }: { id: string; token: string }, request: () => Promise<unknown>) => {
        const calls: number[] = []
        const waits: number[] = []
        for (let round = 0; round < ROUNDS; round++) {
          const startedAt = performance.now()
          const called = request()
          await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
          const askedAt = performance.now()
          await service.instance(id, token).instance()
          waits.push(performance.now() - askedAt)
          await called
          calls.push(performance.now() - startedAt)
        }
        // The minimum, because other load on the machine only adds to it.
        return { call: Math.min(...calls), wait: Math.min(...waits) }
      }
      const small = await fill(100)
      const large = await fill(LARGE)
      const calls = {
        messages: ({ token }: typeof small) => call(token, '/v1/messages?limit=200'),
        chat: ({ token }: typeof small) => call(token, `/v1/messages?limit=200&chat=${CHAT}`),
        conversation: ({ id }: typeof small) =>
          call(service.adminKey, `/admin/v1/instances/${id}/conversation?limit=200&chat=${CHAT}`),
        erasure: ({ token }: typeof small) => call(token, `/v1/chats/${CHAT}/media`, 'DELETE'),
      }
      for (const [name, request] of Object.entries(calls)) {
        const took = {
          small: await measure(small, () => request(small)),
          large: await measure(large, () => request(large)),
        }
        console.log(`${store}, ${name}: ${JSON.stringify(took)}`)
        expect(took.large.call, name).toBeLessThan(5 * took.small.call + SLACK_MS)
        expect(took.large.wait, name).toBeLessThan(5 * took.small.wait + SLACK_MS)
      }
      const all = (await call(small.token, '/v1/messages?limit=200')) as Listed
      expect([all.data.length, all.nextCursor]).toEqual([MESSAGES, null])
      const ids: string[] = []
      let cursor = ''
      for (let pages = 0; pages < 3; pages += 1) {
        const page = (await call(large.token, `/v1/messages?limit=200${cursor}`)) as Listed
        expect(page.data.map(({ text }) => text.length)).toEqual([LARGE])
        ids.push(page.data[0]!.id)
        cursor = `&cursor=${page.nextCursor}`
      }
      expect(ids).toEqual([...new Set(ids)].toSorted().toReversed())
    } finally {
      await service.dispose()
      await database.dispose()
      rmSync(folder, { recursive: true, force: true })
    }
  },
  TEST_WITHIN_MS,
)
