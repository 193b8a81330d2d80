/**
 * `npm run measure:disk [-- --messages 10000]`: how much the database grows with each message, for the table in
 * docs/operations.md. A sandbox instance sends texts of 100 characters; a receiver gets all of their events.
 */
import { readOptions } from '../../scripts/command-line.ts'
import { createDatabase, STORES, type StoreKind } from '../databases/database.ts'
import { startPostgres } from '../databases/postgres.ts'
import { Receiver } from '../receiver.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

const USAGE = 'usage: npm run measure:disk [-- --messages 10000]'
const TEXT = 'x'.repeat(100)
const CONTACTS = 100
const CALLERS = 8
/** `message.sent`, `message.delivered`, `message.read`. */
const EVENTS_EACH = 3
const WITHIN_MS = 900_000
const SIZE: Record<StoreKind, string> = {
  // Free pages do not count, because they are reused.
  sqlite: `select (page_count - freelist_count) * page_size as bytes
    from pragma_page_count, pragma_freelist_count, pragma_page_size`,
  postgres: 'select pg_database_size(current_database()) as bytes',
}

const { values } = readOptions(USAGE, { messages: { type: 'string', default: '10000' } })
const messages = Number(values.messages)

async function measure(store: StoreKind, postgresUrl: string): Promise<void> {
  const database = await createDatabase(store, postgresUrl)
  const env = { ...database.env, SANDBOX: 'on' }
  const service = await new Service({ env }).start()
  const receiver = await new Receiver().listen()
  try {
    const read = async (query: string) =>
      Number(Object.values((await database.read(query, service.dataDir))[0] ?? {})[0])
    const { id, token } = await service.admin.createConnected()
    const instance = service.instance(id, token)
    await instance.setWebhook(receiver.url)
    const before = await read(SIZE[store])
    let next = 0
    const callers = Array.from({ length: CALLERS }, async () => {
      for (let index = next++; index < messages; index = next++)
        await instance.send(String(5_511_900_000_000 + (index % CONTACTS)), TEXT)
    })
    await Promise.all(callers)
    const isPosted = async () =>
      (await read('select count(*) from finished_deliveries')) >= EVENTS_EACH * messages &&
      (await read('select count(*) from deliveries')) === 0
    await until('all events to be posted', isPosted, WITHIN_MS)
    const each = ((await read(SIZE[store])) - before) / messages
    console.log(
      `${store}: ${(each / 1_000).toFixed(2)} KB for each message, so ${(each / 1_000).toFixed(1)} GB for a million`,
    )
  } finally {
    await service.dispose()
    await receiver.close()
    await database.dispose()
  }
}

const postgres = await startPostgres()
try {
  for (const store of STORES) await measure(store, postgres.url)
} finally {
  await postgres.stop()
}
