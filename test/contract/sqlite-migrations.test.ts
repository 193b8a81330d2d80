import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { FLAVOURS } from '../../src/store/engine/migrations/flavour.ts'
import { instancesTables } from '../../src/store/engine/migrations/steps/0001-instances.ts'
import { messagesTables } from '../../src/store/engine/migrations/steps/0002-messages.ts'
import { eventsTables } from '../../src/store/engine/migrations/steps/0003-events.ts'
import { nodesTables } from '../../src/store/engine/migrations/steps/0006-nodes.ts'
import { preparedMessages } from '../../src/store/engine/migrations/steps/0010-prepared-messages.ts'
import { settledMessages } from '../../src/store/engine/migrations/steps/0011-settled-messages.ts'
import { nodesDiffer } from '../../src/store/engine/migrations/steps/0014-nodes-differ.ts'
import { endpoints } from '../../src/store/engine/migrations/steps/0020-endpoints.ts'
import { eventNumbers } from '../../src/store/engine/migrations/steps/0030-event-numbers.ts'

/** Migrations keep existing data. */

function execute(db: Sqlite.Database, statements: readonly string[]): void {
  for (const statement of statements) db.exec(statement)
}

test.each([
  { left: 'all', erased: '0', next: 4 },
  { left: 'those before the last', erased: 'seq = 3', next: 4 },
  { left: 'none', erased: '1', next: 4 },
])('recreating the table keeps messages and numbering, with $left of the messages left', ({ erased, next }) => {
  const db = new Sqlite(':memory:')
  execute(db, [...messagesTables(FLAVOURS.sqlite), ...preparedMessages(FLAVOURS.sqlite)])
  const insert = db.prepare(
    `insert into messages (instance_id, id, recipient, text, whatsapp_id, state, created_at, sent_at, address, content)
     values (?, ?, '5511987650001', 'Olá', ?, ?, 1, ?, ?, ?)`,
  )
  insert.run('inst_b', 'msg_1', '3EB01', 'queued', null, null, null)
  insert.run('inst_a', 'msg_2', '3EB02', 'sent', 2, '1@s.whatsapp.net', Buffer.from([1, 2]))
  insert.run('inst_a', 'msg_3', '3EB03', 'queued', null, '1@s.whatsapp.net', Buffer.from([3]))
  db.exec(`delete from messages where ${erased}`)
  const before = db.prepare('select * from messages order by seq').all()
  execute(db, settledMessages(FLAVOURS.sqlite))
  expect(db.prepare('select * from messages order by seq').all()).toEqual(before)
  insert.run('inst_a', 'msg_4', '3EB04', 'queued', null, null, null)
  expect(db.prepare('select max(seq) as seq from messages').get()).toEqual({ seq: next })
  expect(() => insert.run('inst_a', 'msg_4', '3EB05', 'queued', null, null, null)).toThrow('UNIQUE')
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  db.close()
})

test('the numbering of an empty table starts with one', () => {
  const db = new Sqlite(':memory:')
  execute(
    db,
    [messagesTables, preparedMessages, settledMessages].flatMap(tables => tables(FLAVOURS.sqlite)),
  )
  expect(db.prepare('select name, seq from sqlite_sequence').all()).toEqual([])
  db.close()
})

test('existing events keep their rows and are numbered by instance, in the order of their IDs', () => {
  const db = new Sqlite(':memory:')
  execute(db, eventsTables(FLAVOURS.sqlite))
  const insert = db.prepare(
    `insert into events (instance_id, id, kind, timestamp, created_at, message_id, incoming_digest, body)
     values (?, ?, 'message.received', 1, 2, ?, ?, ?)`,
  )
  insert.run('inst_b', 'evt_2', 'msg_1', Buffer.from([1]), 'body')
  insert.run('inst_a', 'evt_3', null, null, 'x'.repeat(100_000))
  insert.run('inst_b', 'evt_1', 'msg_1', Buffer.from([2]), '')
  const all = () => db.prepare('select * from events order by instance_id, id').all() as { seq?: number }[]
  const before = all()
  execute(db, eventNumbers(FLAVOURS.sqlite))
  expect(all().map(({ seq: _, ...event }) => event)).toEqual(before)
  expect(all().map(({ seq }) => seq)).toEqual([1, 1, 2])
  expect(() => insert.run('inst_b', 'evt_4', null, null, '')).toThrow('NOT NULL')
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  db.close()
})

test('endpoints: unfinished deliveries keep their numbers and belong to the default endpoint', () => {
  const db = new Sqlite(':memory:')
  const before = [instancesTables, eventsTables, nodesTables, nodesDiffer]
  execute(
    db,
    before.flatMap(tables => tables(FLAVOURS.sqlite)),
  )
  db.exec(`insert into instances (id, name, kind, webhook_url, webhook_secret, created_at)
    values ('inst_a', 'Shop', 'whatsapp', 'https://a.test/', x'01', 1)`)
  const insert = db.prepare(`insert into deliveries
    (instance_id, event_id, message_id, url, readiness, blocked_by, attempts, due_at, redelivery, failed_at)
    values ('inst_a', ?, 'msg_1', 'https://a.test/', ?, ?, ?, 5, 0, 4)`)
  insert.run('evt_0', 'first', null, 0)
  insert.run('evt_1', 'retry', null, 2)
  insert.run('evt_2', 'blocked', 'evt_1', 0)
  db.exec(`delete from deliveries where event_id = 'evt_0'`)
  db.exec(`insert into finished_deliveries values (1, 'inst_a', 'evt_0', 'https://a.test/', 'delivered', 1, 0, 0)`)
  db.exec(`insert into attempts values ('inst_a', 2, 1, 'evt_1', 'https://a.test/', 1, 1, 500, null, 'no')`)
  const rows = (table: string) => db.prepare(`select * from ${table} order by 1, 2`).all() as object[]
  const [deliveries, finished, attempts] = ['deliveries', 'finished_deliveries', 'attempts'].map(rows)
  execute(db, endpoints(FLAVOURS.sqlite))
  const endpoint_id = 'endpoint_default'
  const added = { endpoint_id, requested_at: null, scheduled_at: null }
  expect(rows('deliveries')).toEqual(deliveries!.map(row => ({ ...row, ...added })))
  expect(rows('finished_deliveries')).toEqual(finished!.map(row => ({ ...row, endpoint_id })))
  expect(rows('attempts')).toEqual(attempts!.map(row => ({ ...row, requested_number: null })))
  expect(rows('instances')).toMatchObject([{ webhook_url: 'https://a.test/', webhook_events: null, webhook_active: 1 }])
  insert.run('evt_3', 'first', null, 0)
  expect(db.prepare('select max(seq) as seq from deliveries').get()).toEqual({ seq: 4 })
  expect(() => insert.run('evt_3', 'first', null, 0)).toThrow('UNIQUE')
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  db.close()
})
