import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { newCommandId, newMessageId } from '../../src/domain/ids.ts'
import { NO_PACE } from '../../src/domain/pace.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import { searchWindows } from '../../src/store/messages/searching.ts'
import type { Store } from '../../src/store/store.ts'
import { accept, createConnected, incoming, newMessage, take } from './fixture.ts'
import { createSqliteHarness, type StoreHarness } from './harness.ts'

/** The query plans of SQLite for queries whose cost must not depend on the number of other rows. */
describe('the plans of SQLite', () => {
  let harness: StoreHarness
  let store: Store
  let instanceId: string
  let lease: Lease

  beforeEach(async () => {
    harness = await createSqliteHarness()
    store = await harness.open()
    lease = await createConnected(store)
    instanceId = lease.instanceId
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await harness.dispose()
  })

  /** @returns the steps of the plans of all queries that `read` prepares */
  async function planOf(read: () => Promise<unknown>): Promise<string[]> {
    const prepare = vi.spyOn(Sqlite.prototype, 'prepare')
    await read()
    const statements = prepare.mock.calls.map(([sql]) => sql)
    prepare.mockRestore()
    expect(statements).not.toEqual([])
    const db = new Sqlite(join(harness.options.dataDir, 'pombal.db'), { readonly: true })
    const steps = statements.flatMap(sql => {
      const parameters = Array(sql.split('?').length - 1).fill(1)
      return db.prepare(`explain query plan ${sql}`).all(parameters) as { detail: string }[]
    })
    db.close()
    return steps.map(({ detail }) => detail)
  }

  const EVENT = 'SEARCH events USING PRIMARY KEY (instance_id=? AND id=?)'

  test('redeliveries are counted without reading other unfinished deliveries', async () => {
    expect(await planOf(() => store.statistics.countRedelivering(instanceId))).toContain(
      'SEARCH deliveries USING INDEX deliveries_redelivery (instance_id=?)',
    )
  })

  test('events that can be redelivered are counted by the index of finished deliveries', async () => {
    const steps = await planOf(() => store.statistics.countEnded(instanceId, 0, 'exhausted'))
    const read = steps.filter(step => /^(SCAN|SEARCH) [fo]\b/.test(step))
    expect(new Set(read)).toEqual(
      new Set([
        'SEARCH f USING COVERING INDEX finished_deliveries_state (instance_id=? AND state=? AND event_id>? AND event_id<?)',
        'SEARCH o USING PRIMARY KEY (instance_id=? AND event_id=? AND seq=?)',
      ]),
    )
  })

  test('first attempts are read by their own index, after a cursor', async () => {
    expect(await planOf(() => store.deliveries.listFirst(instanceId, 0, 10))).toEqual([
      'SEARCH deliveries USING INDEX deliveries_first (instance_id=? AND endpoint_id=? AND seq>?)',
      EVENT,
    ])
  })

  test('instances with the same number are found by the number', async () => {
    const record = { instanceId, kind: 'whatsapp', phone: '5511977770000' } as const
    expect(await planOf(() => store.connections.listSameNumber(record, 10))).toContain(
      'SEARCH connections USING COVERING INDEX connections_phone (phone=?)',
    )
  })

  test('the feed is read by the index of the numbers', async () => {
    const seq = 'events USING INDEX events_seq (instance_id=? AND seq>?'
    const after = { seq: 0, mark: null }
    const steps = await planOf(() => store.events.readFeed(instanceId, { after, limit: 10, maxBytes: 1 }))
    const own = steps.filter(step => step.includes(' events '))
    expect(own).toEqual([
      `SEARCH ${seq})`,
      `SEARCH ${seq} AND seq<?)`,
      'SEARCH events USING COVERING INDEX events_seq (instance_id=?)',
      'SEARCH events USING COVERING INDEX events_seq (instance_id=? AND seq=?)',
    ])
  })

  test('retries are read by their own index, in the order of their due times', async () => {
    expect(await planOf(() => store.deliveries.listRetries(instanceId, 10))).toEqual([
      'SEARCH deliveries USING INDEX deliveries_retry (instance_id=? AND endpoint_id=?)',
      EVENT,
    ])
  })

  test('queued messages are read by their own index, in the order of acceptance', async () => {
    expect(await planOf(() => store.messages.listQueuedNumbers(instanceId, 0, 10, 10))).toEqual([
      'SEARCH messages USING COVERING INDEX messages_queued (instance_id=? AND seq>? AND seq<?)',
    ])
    const ages = 'SEARCH messages USING INDEX messages_queued (instance_id=? AND seq>?)'
    expect(await planOf(() => store.messages.listQueuedAges(instanceId, 10, 0))).toEqual([ages])
    expect(await planOf(() => store.messages.listQueued(instanceId, 10))).toEqual([
      'SEARCH messages USING INDEX messages_queued (instance_id=? AND seq>? AND seq<?)',
      'SCALAR SUBQUERY 5',
      'CO-ROUTINE page',
      expect.stringMatching(/^CO-ROUTINE \(subquery-\d+\)$/),
      'CO-ROUTINE sizes',
      ages,
      'SCAN sizes',
      expect.stringMatching(/^SCAN \(subquery-\d+\)$/),
      'SEARCH page',
      'CORRELATED SCALAR SUBQUERY 1',
      'SEARCH numbers USING PRIMARY KEY (instance_id=? AND number=?)',
      'CORRELATED SCALAR SUBQUERY 2',
      'SEARCH contacts USING COVERING INDEX contacts_lid (instance_id=? AND lid=?)',
    ])
  })

  test('an earlier message of a chat is searched for in steps, among the first 20,000 queued ones', async () => {
    const db = new Sqlite(join(harness.options.dataDir, 'pombal.db'))
    db.prepare(
      `with recursive n (i) as (select 1 union all select i + 1 from n where i < 19999)
       insert into messages (instance_id, id, recipient, text, whatsapp_id, state, created_at)
       select ?, 'msg_' || i, 'r' || i, '', 'w' || i, 'queued', 1 from n`,
    ).run(instanceId)
    db.close()
    const steps = vi.spyOn(searchWindows, 'take')
    const send = async (to: string) => (await accept(store, instanceId, { to })).id
    const ids = [await send('ana'), await send('ana'), await send('bia'), await send('bia')]
    const waits = new Map()
    const plan = await planOf(async () => {
      for (const [id, wait] of await store.paces.findWaits(instanceId, ids.slice(0, 2), 0)) waits.set(id, wait)
    })
    expect([...waits]).toEqual([[ids[1], { waitingFor: 'order', notBefore: null }]])
    expect(steps).toHaveBeenCalledTimes(19)
    expect(await store.paces.findWaits(instanceId, ids.slice(2), 0)).toEqual(new Map())
    expect(steps).toHaveBeenCalledTimes(2 * 19)
    const read = '(instance_id=? AND seq>? AND seq<?)'
    expect(plan.filter(step => step.includes(' messages ')).slice(1)).toEqual([
      `SEARCH messages USING COVERING INDEX messages_queued ${read}`,
      `SEARCH messages USING INDEX messages_queued ${read}`,
    ])
  })

  test.each([
    ['pending', 'deliveries USING INDEX sqlite_autoindex_deliveries_1'],
    ['retrying', 'deliveries USING COVERING INDEX deliveries_retried (instance_id=? AND event_id>? AND event_id<?)'],
    ['blocked', 'deliveries USING COVERING INDEX deliveries_blocked'],
    ['delivered', 'finished_deliveries USING COVERING INDEX finished_deliveries_state'],
    ['exhausted', 'finished_deliveries USING COVERING INDEX finished_deliveries_state'],
  ] as const)('events whose delivery is %s are read by an index of that state', async (state, index) => {
    const steps = await planOf(() => store.events.list(instanceId, { limit: 10 }, { state }))
    expect(steps.some(step => step.startsWith(`SEARCH ${index}`))).toBe(true)
    expect(steps.filter(step => step.startsWith('SCAN'))).toEqual([])
  })

  const MESSAGE = 'SEARCH messages USING INDEX sqlite_autoindex_messages_1 (id=? AND instance_id=?)'
  const QUEUED = 'SEARCH messages USING COVERING INDEX messages_queued (instance_id=?)'
  const SETTLED = 'SEARCH messages USING COVERING INDEX messages_settled (instance_id=? AND id>? AND id<?)'

  const FAILED = 'SEARCH messages USING COVERING INDEX messages_failed (instance_id=? AND id>? AND id<?)'

  test.each([
    [undefined, [QUEUED, SETTLED, MESSAGE]],
    ['queued', [QUEUED, MESSAGE]],
    ['sent', [SETTLED, MESSAGE]],
    ['failed', [FAILED, 'SEARCH messages USING INDEX messages_failed (instance_id=? AND id=?)']],
  ] as const)('messages that are %s are listed by the indexes that contain their IDs', async (state, indexes) => {
    const steps = await planOf(() => store.messages.list(instanceId, { limit: 10 }, { state }))
    const uses = steps.filter(step => step.startsWith('SEARCH') || step.startsWith('SCAN'))
    expect(new Set(uses)).toEqual(new Set(indexes))
  })

  test('a message is found by its ID; messages of the last hour are counted by the indexes that contain their IDs', async () => {
    expect(await planOf(() => store.messages.find(instanceId, 'msg_1'))).toEqual([MESSAGE])
    const steps = await planOf(() => store.statistics.activity([instanceId], 0, 0))
    expect(steps).toEqual(expect.arrayContaining([QUEUED, SETTLED.replace(' AND id<?', '')]))
    expect(steps.filter(step => step.startsWith('SCAN messages'))).toEqual([])
  })

  test('deliveries of a webhook are counted by the index of finished deliveries and by that of retries', async () => {
    const steps = await planOf(() => store.statistics.activity([instanceId], 0, 0))
    const ended = 'SEARCH f USING COVERING INDEX finished_deliveries_state (instance_id=? AND state=?'
    expect(steps).toEqual(
      expect.arrayContaining([
        `${ended} AND event_id>?)`,
        'SEARCH d USING COVERING INDEX deliveries_retry (instance_id=? AND endpoint_id<?)',
        'SEARCH a USING PRIMARY KEY (instance_id=? AND event_id=? AND delivery_seq=?)',
      ]),
    )
    expect(steps.filter(step => /^SCAN (d|f|a|deliveries|finished_deliveries|attempts)\b/.test(step))).toEqual([])
    expect(steps.filter(step => step.includes('SEARCH f') && !step.includes('finished_deliveries_state'))).toEqual([])
  })

  test('troubles are found by a few look-ups per instance, in windows of instances', async () => {
    const steps = await planOf(() => store.statistics.troubles(0))
    expect(steps).toEqual(
      expect.arrayContaining([
        'SEARCH i USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)',
        'SEARCH c USING PRIMARY KEY (instance_id=?)',
        'SEARCH l USING PRIMARY KEY (instance_id=?)',
        'SEARCH f USING COVERING INDEX finished_deliveries_state (instance_id=? AND state=? AND event_id>?)',
        'SEARCH o USING PRIMARY KEY (instance_id=? AND event_id=? AND seq=?)',
        'SEARCH own USING PRIMARY KEY (instance_id=? AND id=?)',
        'SEARCH d USING COVERING INDEX deliveries_retry (instance_id=? AND endpoint_id<?)',
      ]),
    )
    expect(steps.filter(step => /^SCAN (i|c|l|f|d)\b/.test(step))).toEqual([])
    const ofNamed = await planOf(() => store.statistics.troubles(0, [instanceId]))
    expect(ofNamed.filter(step => /^(SCAN (i|c|l|f|d)\b|.*rowid>)/.test(step))).toEqual([])
  })

  test('problems of webhooks are found by a few look-ups per endpoint', async () => {
    const steps = await planOf(() => store.alerts.findProblems(0))
    expect(steps).toEqual(
      expect.arrayContaining([
        'SEARCH d USING INDEX deliveries_retry (instance_id=? AND endpoint_id=?)',
        'SEARCH d USING INDEX deliveries_operator (endpoint_id=?)',
        'SEARCH a USING PRIMARY KEY (instance_id=? AND event_id=? AND delivery_seq=? AND attempt_number=?)',
        'SEARCH f USING COVERING INDEX finished_deliveries_state (instance_id=? AND state=? AND event_id>?)',
        'SEARCH o USING PRIMARY KEY (instance_id=? AND event_id=? AND seq=?)',
        'SEARCH g USING INDEX finished_deliveries_endpoint (endpoint_id=? AND event_id>?)',
      ]),
    )
    expect(steps.filter(step => /^(SCAN [adfg]\b|SEARCH f USING PRIMARY KEY)/.test(step))).toEqual([])
  })

  test('one conversation, and the ends of every conversation, are read by the indexes of chats', async () => {
    const conversation = await planOf(() => store.conversations.listEntries(instanceId, { limit: 10 }, '5511988880000'))
    expect(conversation).toEqual(
      expect.arrayContaining([
        'SEARCH messages USING COVERING INDEX messages_chat (instance_id=? AND address=? AND id>? AND id<?)',
        'SEARCH messages USING INDEX messages_queued (instance_id=?)',
        'SEARCH messages USING INDEX messages_unwritten (instance_id=? AND recipient=? AND id>? AND id<?)',
        'SEARCH incoming_messages USING COVERING INDEX incoming_messages_chat (instance_id=? AND chat=? AND id>? AND id<?)',
      ]),
    )
    expect(conversation.filter(step => /^SCAN (messages|incoming_messages)\b/.test(step))).toEqual([])
    const chat = incoming({ lid: '1@lid' })
    const lease = await take(store, instanceId)
    await store.events.storeIncoming(lease, chat, Date.now())
    const inbox = await planOf(() => store.conversations.listInbox(instanceId, { limit: 10 }))
    expect(inbox).toEqual(
      expect.arrayContaining([
        'SEARCH contacts USING COVERING INDEX contacts_lid (instance_id=? AND lid=?)',
        'SEARCH m USING INDEX messages_chat (instance_id=? AND address=? AND id>?)',
        'SEARCH m USING INDEX messages_chat (instance_id=? AND address=? AND id<?)',
        'SEARCH i USING INDEX incoming_messages_chat (instance_id=? AND chat=?)',
        'SEARCH i USING COVERING INDEX incoming_messages_written_chat (instance_id=? AND chat=?)',
        'SEARCH i USING INDEX incoming_messages_chat (instance_id=? AND chat=? AND id>?)',
      ]),
    )
    expect(inbox.filter(step => /^SCAN (m|i|messages|incoming_messages)\b/.test(step))).toEqual([])
  })

  test('the directory is read by the instance, and groups in the order of their names', async () => {
    const groups = await planOf(() => store.directory.listGroups(instanceId, { limit: 10 }, 'team'))
    expect(groups).toEqual(['SEARCH groups USING INDEX groups_by_name (instance_id=?)'])
    const contacts = await planOf(() => store.directory.listContacts(instanceId, { limit: 10 }, 'ana'))
    expect(contacts.filter(step => step.startsWith('SCAN'))).toEqual([])
    expect(contacts[0]).toMatch(
      /^SEARCH contacts USING (PRIMARY KEY|INDEX sqlite_autoindex_contacts_1) \(instance_id=\?\)$/,
    )
    expect(contacts).toContainEqual(expect.stringContaining('contacts_lid (instance_id=? AND lid=?)'))
  })

  test('the groups of a person are searched a few at a time, by the key', async () => {
    const steps = await planOf(() => store.retention.openContact(instanceId, '5511988880000', 1))
    expect(steps.filter(step => step.includes(' groups '))).toEqual([
      'SEARCH groups USING INDEX sqlite_autoindex_groups_1 (instance_id=? AND id>?)',
    ])
  })

  test('the queued replies to a contact are read window by window', async () => {
    const { messages } = await store.retention.openContact(instanceId, '5511977770000', Date.now())
    const steps = await planOf(async () => {
      for await (const _ of messages()) throw new Error('There are no messages.')
    })
    expect(steps).toContain('SEARCH messages USING INDEX messages_queued (instance_id=? AND seq>?)')
  })

  test('the number of a LID is found without reading other contacts', async () => {
    const lid = '990000007654321@lid'
    const byLid = incoming({ from: '990000007654321', addressing: 'lid', lid })
    await store.paces.set(instanceId, { ...NO_PACE, newRecipientsPerDay: 1 }, 1)
    const slowed = await accept(store, instanceId)
    for (const stranger of ['ana', 'bia']) await store.paces.take(lease, newMessageId(1), stranger, 1)
    for (const read of [
      () => store.events.storeIncoming(lease, byLid, 1),
      () => store.conversations.listChats(instanceId, { limit: 10 }),
      () => store.conversations.listLines(instanceId, { limit: 10 }, { chat: lid }),
      () => store.numbers.isContact(instanceId, ['990000001111111@lid']),
      () => store.paces.findWaits(instanceId, [slowed.id], 1),
    ]) {
      const steps = (await planOf(read)).filter(step => / (contacts|c|k) /.test(step))
      expect(steps).toContainEqual(expect.stringContaining('COVERING INDEX contacts_lid (instance_id=? AND lid=?)'))
      for (const step of steps) expect(step).toMatch(/\(instance_id=\? AND (lid|number)=\?\)|contacts_latest/)
    }
  })

  test('scheduled messages are read by an index that contains no others', async () => {
    expect(await planOf(() => store.messages.releaseDue({ instanceId, owner: 'node-1', epoch: 1 }, 1))).toEqual([
      'SEARCH messages USING INDEX messages_scheduled (instance_id=? AND not_before>?)',
    ])
  })

  test('the messages of one moment are released in the order of the index, so that no commit reads or sorts all of them', async () => {
    const plan = { notBefore: Date.now() + 60_000 }
    for (let count = 0; count < 101; count += 1) await accept(store, instanceId, plan)
    const steps = await planOf(() => store.messages.releaseDue(lease, plan.notBefore))
    expect(steps).toContain('SEARCH messages USING INDEX messages_scheduled (instance_id=? AND not_before=? AND id>?)')
    expect(steps.filter(step => step.includes('TEMP B-TREE'))).toHaveLength(1)
  })

  test('the commands on a scheduled message are found without reading other messages of its moment', async () => {
    const { id } = await accept(store, instanceId, { notBefore: Date.now() + 60_000 })
    const command = { kind: 'delete', targetId: id } as const
    const deletion = newMessage(instanceId, { id: newCommandId(Date.now()), to: '', text: '', extras: { command } })
    expect(await planOf(() => store.messages.accept(deletion, Date.now()))).toContain(
      'SEARCH messages USING INDEX messages_scheduled (instance_id=? AND not_before=? AND id<?)',
    )
  })

  test('the first fetch of each instance is found without reading the others', async () => {
    const full = { instances: [instanceId], hosts: [{ instanceId, host: 'a.example' }] }
    const steps = await planOf(() => store.fetches.nextInMs(full))
    expect(steps.filter(step => /\b(media_fetches|later|own|f)\b/.test(step)).toSorted()).toEqual([
      'SEARCH f USING INDEX sqlite_autoindex_media_fetches_1 (instance_id=? AND media_id=?)',
      'SEARCH later USING COVERING INDEX media_fetches_first (instance_id>?)',
      'SEARCH media_fetches USING COVERING INDEX media_fetches_first',
      'SEARCH own USING INDEX media_fetches_first (instance_id=?)',
    ])
  })

  test('retention and the erasure of an instance read settled messages only', async () => {
    await store.events.storeIncoming(lease, incoming(), 0)
    const steps = await planOf(() => store.retention.step(1, 1))
    const own = steps.filter(step => step.startsWith('SEARCH m USING'))
    expect(new Set(own)).toEqual(
      new Set([
        'SEARCH m USING COVERING INDEX messages_settled (instance_id=? AND id<?)',
        'SEARCH m USING COVERING INDEX messages_settled (instance_id=? AND id>? AND id<?)',
        'SEARCH m USING INDEX messages_settled (instance_id=? AND id>? AND id<?)',
      ]),
    )
    expect(steps.filter(step => /^SCAN (m|messages)\b/.test(step))).toEqual([])
  })

  test('retention looks for unfinished deliveries of a message by its events', async () => {
    await store.events.storeIncoming(lease, incoming(), 0)
    const steps = await planOf(() => store.retention.step(1, 1))
    const ofMessage = 'SEARCH of_message USING COVERING INDEX events_message (instance_id=? AND message_id=?)'
    const ofEvent = 'SEARCH d USING COVERING INDEX sqlite_autoindex_deliveries_1 (instance_id=? AND event_id=?)'
    expect(steps.filter(step => step.includes(' of_message '))).toEqual(Array(3).fill(ofMessage))
    expect(steps.filter(step => step.includes('sqlite_autoindex_deliveries_1'))).toEqual(Array(4).fill(ofEvent))
  })
})
