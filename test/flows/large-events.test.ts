import { expect, inject, test } from 'vitest'
import { MAX_EVENT_TEXT_UNITS } from '../../src/domain/event.ts'
import { firstEventId, firstMessageId } from '../../src/domain/ids.ts'
import { createDatabase, STORES, type StoreKind } from '../databases/database.ts'
import { TEST_WITHIN_MS } from '../deadlines.ts'
import { Service } from '../service.ts'

const EVENTS = 200
const LARGE = 1_000_000
const ROUNDS = 5
/** Real time: another caller asks while a list is under way, and its delay is measured. */
const PAUSE_MS = 5

/** Events of an instance with texts of this length; `form`: with a row of the message, or as they were before there were any. */
function insertEvents(store: StoreKind, instanceId: string, length: number, form: 'old' | 'new'): string[] {
  const isSqlite = store === 'sqlite'
  const numbers = isSqlite
    ? `(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${EVENTS}) select i from n) as n`
    : `generate_series(1, ${EVENTS}) as n(i)`
  const textOf = (length: number) =>
    isSqlite ? `replace(hex(zeroblob(${length / 2})), '0', 'x')` : `repeat('x', ${length})`
  const shown = textOf(form === 'new' ? Math.min(length, MAX_EVENT_TEXT_UNITS) : length)
  const now = Date.now()
  const idOf = (first: string) => `'${first}' || (100000000 + i)`
  const digest = isSqlite ? 'randomblob(32)' : "decode(md5(i::text || 'x'), 'hex')"
  const envelope = JSON.stringify({ event: 'message.received', instanceId, timestamp: '2026-01-01T00:00:00.000Z' })
  const body = `'${envelope.slice(0, -1)},"data":{"id":"A","from":"5511987654321","type":"text","text":"' || ${shown} || '"}}'`
  const messageId = form === 'new' ? idOf(firstMessageId(now)) : 'null'
  const events = `insert into events (instance_id, id, kind, timestamp, created_at, message_id, incoming_digest, seq, body)
    select '${instanceId}', ${idOf(firstEventId(now))}, 'message.received', i, i, ${messageId}, ${digest}, i, ${body} from ${numbers}`
  const messages = `insert into incoming_messages (instance_id, id, created_at, sent_at, type, chat, sender, whatsapp_id, text)
    select '${instanceId}', ${idOf(firstMessageId(now))}, i, i, 'text', '5511987654321', '5511987654321', '"A"', '"' || ${textOf(length)} || '"' from ${numbers}`
  return form === 'new' ? [events, messages] : [events]
}

test.each(STORES)(
  'on %s, listing 200 events with 1 MB texts takes as long as listing 200 small ones, for the caller and for others',
  async store => {
    const database = await createDatabase(store, inject('postgresUrl'))
    const service = new Service({ env: { RATE_LIMIT_PER_MINUTE: '1000000', ...database.env } })
    try {
      await service.start()
      const measure = async (length: number, form: 'old' | 'new') => {
        const { id, token } = await service.admin.createInstance('whatsapp')
        for (const statement of insertEvents(store, id, length, form)) await database.run(statement, service.dataDir)
        const lists: number[] = []
        const waits: number[] = []
        for (let round = 0; round < ROUNDS; round++) {
          const startedAt = performance.now()
          const listed = service.admin.listEvents(id, '?limit=200')
          await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
          const askedAt = performance.now()
          await service.instance(id, token).instance()
          waits.push(performance.now() - askedAt)
          const events = await listed
          lists.push(performance.now() - startedAt)
          expect(events).toHaveLength(EVENTS)
        }
        // The minimum, because other load on the machine only adds to it.
        return { list: Math.min(...lists), wait: Math.min(...waits) }
      }
      const small = await measure(100, 'new')
      // On SQLite the rows of events made before are read whole to find them.
      for (const form of store === 'sqlite' ? (['new'] as const) : (['new', 'old'] as const)) {
        const large = await measure(LARGE, form)
        console.log(`${store}, ${form}: ${JSON.stringify({ small, large })}`)
        expect(large.list).toBeLessThan(5 * small.list + 100)
        expect(large.wait).toBeLessThan(5 * small.wait + 100)
      }
    } finally {
      await service.dispose()
      await database.dispose()
    }
  },
  TEST_WITHIN_MS,
)
