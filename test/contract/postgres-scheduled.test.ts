import pg from 'pg'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { newCommandId } from '../../src/domain/ids.ts'
import type { AcceptOutcome } from '../../src/store/messages/messages.ts'
import type { Store } from '../../src/store/store.ts'
import { untilStored } from '../../src/store/until-stored.ts'
import { until } from '../until.ts'
import { createConnected, idempotency, newMessage } from './fixture.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'

let harness: StoreHarness
beforeEach(async () => {
  harness = await createPostgresHarness(inject('postgresUrl'))
})
afterEach(() => harness.dispose())

/** Runs statements in a transaction that is open meanwhile. */
async function during(statements: readonly string[], run: () => Promise<void>): Promise<void> {
  const blocker = new pg.Client({ connectionString: harness.options.databaseUrl! })
  await blocker.connect()
  try {
    for (const statement of ['begin', ...statements]) await blocker.query(statement)
    await run()
    await blocker.query('commit')
  } finally {
    await blocker.end()
  }
}

async function waiting(count: number): Promise<void> {
  await until(`${count} to wait`, async () => {
    const [row] = await harness.execute(
      `select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return Number(row!['count']) >= count
  })
}

test('a deletion that waits for the row of its message finds it after another node has released the message', async () => {
  const [owner, other] = await Promise.all([harness.open(), harness.open()])
  const lease = await createConnected(owner)
  const { instanceId } = lease
  const message = newMessage(instanceId, { notBefore: 5_000 })
  await owner.messages.accept(message, 1_000)
  let released: Promise<number | null> | undefined
  let deleted: Promise<AcceptOutcome> | undefined
  const command = { kind: 'delete', targetId: message.id } as const
  const deletion = newMessage(instanceId, { id: newCommandId(5_000), extras: { command } })
  await during([`select 1 from messages where id = '${message.id}' for update`], async () => {
    released = untilStored(() => owner.messages.releaseDue(lease, 5_000), AbortSignal.timeout(20_000))
    await waiting(1)
    // On a slow machine the wait takes longer than the acceptance may wait for a lock. It is then repeated.
    deleted = untilStored(() => other.messages.accept(deletion, 5_000), AbortSignal.timeout(20_000))
    await waiting(2)
  })
  expect(await released).toBeNull()
  expect(await deleted).toEqual({ kind: 'accepted', id: deletion.id })
  expect(await owner.messages.find(instanceId, message.id)).toMatchObject({
    state: 'failed',
    failure: { code: 'cancelled' },
  })
  expect(await owner.messages.listQueued(instanceId, 10)).toEqual([])
})

test('two deletions with one key on two nodes are one, even while the instance is not connected', async () => {
  const [owner, other] = await Promise.all([harness.open(), harness.open()])
  const lease = await createConnected(owner)
  const { instanceId } = lease
  const message = newMessage(instanceId)
  await owner.messages.accept(message, 1_000)
  const stopped = { state: 'stopped', phone: '5511900000000', reason: 'Stopped.' } as const
  await owner.connections.record(lease, stopped, 1_000)
  const command = { kind: 'delete', targetId: message.id } as const
  const remove = (store: Store) => {
    const deletion = newMessage(instanceId, {
      id: newCommandId(2_000),
      extras: { command },
      idempotency: idempotency('one'),
    })
    return untilStored(() => store.messages.accept(deletion, 2_000), AbortSignal.timeout(20_000))
  }
  let outcomes: Promise<AcceptOutcome[]> | undefined
  await during([`select 1 from messages where id = '${message.id}' for update`], async () => {
    outcomes = Promise.all([owner, other].map(remove))
    await waiting(2)
  })
  expect((await outcomes!).map(({ kind }) => kind).toSorted()).toEqual(['accepted', 'replayed'])
})

test('a command on a message that another node is cancelling does not wait for the moment of the message', async () => {
  const store = await harness.open()
  const { instanceId } = await createConnected(store)
  const message = newMessage(instanceId, { notBefore: 5_000 })
  await store.messages.accept(message, 1_000)
  const command = { kind: 'reaction', emoji: '👍', targetId: message.id } as const
  const reaction = newMessage(instanceId, { id: newCommandId(2_000), extras: { command } })
  let accepted: Promise<AcceptOutcome> | undefined
  const cancel = `update messages set state = 'failed', failed_at = 2000, deleted_at = 2000 where id = '${message.id}'`
  await during([cancel], async () => {
    accepted = untilStored(() => store.messages.accept(reaction, 2_000), AbortSignal.timeout(20_000))
    await Promise.race([waiting(1), accepted])
  })
  expect(await accepted).toMatchObject({ kind: 'accepted' })
  // The sender fails it at its turn.
  const [queued] = await store.messages.listQueued(instanceId, 10)
  expect(queued).toMatchObject({ id: reaction.id, createdAt: 2_000 })
})
