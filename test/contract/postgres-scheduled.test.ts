import pg from 'pg'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { newCommandId } from '../../src/domain/ids.ts'
import { untilStored } from '../../src/store/until-stored.ts'
import { until } from '../until.ts'
import { createConnected, newMessage } from './fixture.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'

let harness: StoreHarness
beforeEach(async () => {
  harness = await createPostgresHarness(inject('postgresUrl'))
})
afterEach(() => harness.dispose())

test('a deletion that waits for the row of its message finds it after another node has released the message', async () => {
  const [owner, other] = await Promise.all([harness.open(), harness.open()])
  const lease = await createConnected(owner)
  const { instanceId } = lease
  const message = newMessage(instanceId, { notBefore: 5_000 })
  await owner.messages.accept(message, 1_000)
  const waiting = (count: number) =>
    until(`${count} to wait`, async () => {
      const [row] = await harness.execute(
        `select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return Number(row!['count']) >= count
    })
  const blocker = new pg.Client({ connectionString: harness.options.databaseUrl! })
  await blocker.connect()
  try {
    await blocker.query('begin')
    await blocker.query(`select 1 from messages where id = '${message.id}' for update`)
    const released = owner.messages.releaseDue(lease, 5_000)
    await waiting(1)
    const command = { kind: 'delete', targetId: message.id } as const
    const deletion = newMessage(instanceId, { id: newCommandId(5_000), extras: { command } })
    // On a slow machine the wait takes longer than the acceptance may wait for a lock. It is then repeated.
    const deleted = untilStored(() => other.messages.accept(deletion, 5_000), AbortSignal.timeout(20_000))
    await waiting(2)
    await blocker.query('commit')
    expect(await released).toBeNull()
    expect(await deleted).toEqual({ kind: 'accepted', id: deletion.id })
    expect(await owner.messages.find(instanceId, message.id)).toMatchObject({
      state: 'failed',
      failure: { code: 'cancelled' },
    })
    expect(await owner.messages.listQueued(instanceId, 10)).toEqual([])
  } finally {
    await blocker.end()
  }
})
