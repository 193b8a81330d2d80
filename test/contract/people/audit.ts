import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { AuditEntry } from '../../../src/store/audit/audit.ts'
import type { Store } from '../../../src/store/store.ts'
import { createConnected, newInstance, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

export function newEntry(changes: Partial<AuditEntry> = {}): AuditEntry {
  const id = randomBytes(6).toString('hex')
  return {
    actor: `acc_${id}`,
    actorName: 'Ana',
    action: 'renameInstance',
    instanceId: null,
    address: '192.0.2.1',
    details: { name: 'Shop' },
    ...changes,
  }
}

/** Every record, the oldest first. */
async function listAll(store: Store) {
  const { data } = await store.audit.list({ limit: 200 }, {})
  return data.toReversed()
}

export function auditContract(createHarness: CreateHarness): void {
  describe('the audit', () => {
    const context = withStore(createHarness)
    const recordsOf = async (entry: AuditEntry) =>
      (await context.store.audit.list({ limit: 200 }, { actor: entry.actor })).data

    test('records who, what, on which instance and from where', async () => {
      const { store } = context
      const entry = newEntry({
        instanceId: 'inst_1',
        details: { keyId: 'key_1', count: 2, succeeded: false, by: null },
      })
      const before = Date.now()
      const { seq, digest } = await store.audit.append(entry)
      const [record, ...more] = await recordsOf(entry)
      expect(more).toEqual([])
      expect(record).toEqual({ ...entry, seq, digest, at: expect.any(Number) })
      expect(record!.at).toBeGreaterThanOrEqual(before - 1_000)
      expect(digest).toMatch(/^[0-9a-f]{64}$/)
    })

    test('records a change once, in its commit, and does not record a call that changes nothing', async () => {
      const { store } = context
      const instance = newInstance()
      await store.instances.create(instance, 0)
      const entry = newEntry({ instanceId: instance.id })
      await store.audit.during(entry, async pending => {
        expect(await store.instances.rename('inst_aaaaaaaaaaaa', 'New')).toBeNull()
        expect(pending.recorded).toBeNull()
        await store.instances.rename(instance.id, 'New')
        expect(pending.recorded).not.toBeNull()
        await store.instances.rename(instance.id, 'Newer')
        await store.audit.finish(pending, true)
      })
      expect(await recordsOf(entry)).toHaveLength(1)
      expect((await store.instances.find(instance.id))?.name).toBe('Newer')

      const refused = newEntry()
      await store.audit.during(refused, async pending => {
        await store.instances.rename('inst_aaaaaaaaaaaa', 'New')
        await store.audit.finish(pending, false)
        await store.instances.rename(instance.id, 'After the call')
      })
      expect(await recordsOf(refused)).toEqual([])
    })

    test('records a call without a write at its end', async () => {
      const { store } = context
      const entry = newEntry()
      await store.audit.during(entry, pending => store.audit.finish(pending, true))
      expect(await recordsOf(entry)).toHaveLength(1)
    })

    test('a change that fails is not recorded', async () => {
      const { store } = context
      const instance = newInstance()
      await store.instances.create(instance, 0)
      const entry = newEntry()
      await expect(store.audit.during(entry, () => store.instances.create(instance, 0))).rejects.toThrow()
      expect(await recordsOf(entry)).toEqual([])
    })

    test('never records a write by the node that owns the instance', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const entry = newEntry()
      await store.audit.during(entry, () => store.connections.record(lease, { reason: 'Other.' }, Date.now()))
      expect(await recordsOf(entry)).toEqual([])
    })

    test('is one chain without gaps, however many changes are made at the same time', async () => {
      const { store } = context
      const instances = Array.from({ length: 30 }, () => newInstance())
      await Promise.all(
        instances.map(instance => store.audit.during(newEntry(), () => store.instances.create(instance, 0))),
      )
      await Promise.all([
        ...instances.map(({ id }) => store.audit.during(newEntry(), () => store.instances.rename(id, 'New'))),
        ...instances.map(({ id }) => store.audit.during(newEntry(), () => store.instances.delete(id, 0))),
        ...instances.map(() => store.audit.append(newEntry())),
      ])
      const records = await listAll(store)
      expect(records.length).toBeGreaterThanOrEqual(90)
      expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => records[0]!.seq + index))
      const { entries, digest, brokenAt } = await store.audit.verify()
      expect([entries, digest, brokenAt]).toEqual([records.at(-1)!.seq, records.at(-1)!.digest, null])
    })

    test('is listed newest first in pages, by who, what, instance and time', async () => {
      const { store } = context
      const mine = newEntry({ action: 'first', instanceId: 'inst_2' })
      await store.audit.append(mine)
      await store.audit.append({ ...mine, action: 'second', instanceId: 'inst_3' })
      await store.audit.append({ ...mine, action: 'third', instanceId: null })
      const actions = async (filter: object) => {
        const { data } = await store.audit.list({ limit: 200 }, { actor: mine.actor, ...filter })
        return data.map(({ action }) => action)
      }
      expect(await actions({})).toEqual(['third', 'second', 'first'])
      expect(await actions({ action: 'second' })).toEqual(['second'])
      expect(await actions({ instanceId: 'inst_2' })).toEqual(['first'])
      expect(await actions({ since: Date.now() + 60_000 })).toEqual([])
      expect(await actions({ until: Date.now() - 60_000 })).toEqual([])
      const page = await store.audit.list({ limit: 2 }, { actor: mine.actor })
      expect(page.data.map(({ action }) => action)).toEqual(['third', 'second'])
      const rest = await store.audit.list({ limit: 2, cursor: page.nextCursor! }, { actor: mine.actor })
      expect([rest.data.map(({ action }) => action), rest.nextCursor]).toEqual([['first'], null])
    })

    test('outlives the instance', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const entry = newEntry({ instanceId: lease.instanceId })
      await store.audit.during(entry, () => store.instances.delete(lease.instanceId, 0))
      expect(await recordsOf(entry)).toHaveLength(1)
    })

    describe('a check', () => {
      test.each([
        ['a changed record', `update audit_log set actor = 'somebody else' where seq = 2`, 3],
        ['a changed time', 'update audit_log set at = at + 1 where seq = 2', 3],
        ['changed details', `update audit_log set details = '{}' where seq = 2`, 3],
        ['the newest record, changed', `update audit_log set address = null where seq = 4`, 4],
        ['a missing record', 'delete from audit_log where seq = 2', 2],
        ['a missing first record', 'delete from audit_log where seq = 1', 1],
        ['a missing newest record', 'delete from audit_log where seq = 4', 4],
        ['missing records', 'delete from audit_log', 1],
      ])('finds %s', async (_, statement, brokenAt) => {
        const harness = await createHarness()
        try {
          const store = await harness.open()
          expect(await store.audit.verify()).toEqual({ entries: 0, digest: '0'.repeat(64), brokenAt: null })
          for (let count = 0; count < 4; count += 1) await store.audit.append(newEntry())
          const { digest } = (await listAll(store)).at(-1)!
          expect(await store.audit.verify()).toEqual({ entries: 4, digest, brokenAt: null })
          await harness.execute(statement)
          expect(await store.audit.verify()).toMatchObject({ entries: 4, brokenAt })
        } finally {
          await harness.dispose()
        }
      })

      test('reads more records than fit into one step, and lets other work run between the steps', async () => {
        const { store } = context
        await Promise.all(Array.from({ length: 1_100 }, () => store.audit.append(newEntry())))
        let turns = 0
        let isOver = false
        const count = (): void => {
          turns += 1
          if (!isOver) setImmediate(count)
        }
        setImmediate(count)
        const { entries, brokenAt } = await store.audit.verify()
        isOver = true
        expect([entries > 1_000, brokenAt]).toEqual([true, null])
        expect(turns).toBeGreaterThanOrEqual(3)
      })
    })
  })
}
