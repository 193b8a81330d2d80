import { describe, expect, test } from 'vitest'
import { newMessageId } from '../../../src/domain/ids.ts'
import { QUEUED_PAGE_BYTES } from '../../../src/store/messages/messages.ts'
import {
  accept,
  createConnected,
  createOwned,
  idempotency,
  newMessage,
  PREPARED,
  watchHints,
  withStore,
} from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

export function acceptingContract(createHarness: CreateHarness): void {
  describe('accepting', () => {
    const context = withStore(createHarness)

    test('an accepted message is queued and stored unchanged', async () => {
      const { store } = context
      const { instanceId } = await createConnected(store)
      const hints = watchHints(store, instanceId)
      const message = newMessage(instanceId, { text: 'Olá 👋\nsecond line' })
      expect(await store.messages.accept(message, 1_000)).toEqual({ kind: 'accepted', id: message.id })
      expect(hints).toEqual(['queued'])
      expect(await store.messages.find(instanceId, message.id)).toEqual({
        id: message.id,
        whatsappId: message.whatsappId,
        state: 'queued',
        to: message.to,
        text: 'Olá 👋\nsecond line',
        createdAt: 1_000,
        sentAt: null,
        deliveredAt: null,
        readAt: null,
        failedAt: null,
        editedAt: null,
        deletedAt: null,
        failure: null,
      })
      expect(await store.messages.find(instanceId, 'msg_absent')).toBeNull()
      expect(await store.messages.find('inst_other', message.id)).toBeNull()
    })

    test('the queue returns messages in the order of acceptance', async () => {
      const { store } = context
      const { instanceId } = await createConnected(store)
      const accepted: string[] = []
      for (let count = 0; count < 5; count += 1) accepted.push((await accept(store, instanceId)).id)
      const queued = await store.messages.listQueued(instanceId, 3)
      expect(queued.map(({ id }) => id)).toEqual(accepted.slice(0, 3))
      const seqs = queued.map(({ seq }) => seq)
      expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
      expect(queued[0]).toMatchObject({ instanceId, to: '5511999990000', text: 'Good morning', prepared: null })
    })

    test('a page of the queue ends where it is large, and the next page continues', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const texts = Array.from({ length: 20 }, () => newMessage(instanceId, { text: 'á'.repeat(32_768) }))
      for (const message of texts) await store.messages.accept(message, 5)
      const extras = { metadata: { note: 'n'.repeat(1_000_000) } }
      await store.messages.accept(newMessage(instanceId, { text: 'x'.repeat(60_000), extras }), 5)
      const last = newMessage(instanceId)
      await store.messages.accept(last, 5)
      const first = await store.messages.listQueued(instanceId, 100)
      expect(first.map(({ id }) => id)).toEqual(texts.slice(0, 16).map(({ id }) => id))
      expect(first.map(({ bytes }) => bytes)).toEqual(Array(16).fill(65_536))
      const second = await store.messages.listQueued(instanceId, 100, first.at(-1)!.seq)
      expect(second).toHaveLength(5)
      const third = await store.messages.listQueued(instanceId, 100, second.at(-1)!.seq)
      expect(third.map(({ id }) => id)).toEqual([last.id])
      const content = new Uint8Array(QUEUED_PAGE_BYTES)
      await store.messages.recordPrepared(lease, texts[0]!.id, { address: '5511999990000@s.whatsapp.net', content })
      expect(await store.messages.listQueued(instanceId, 100)).toHaveLength(1)
      const ages = await store.messages.listQueuedAges(instanceId, 100, 0)
      expect(ages.map(({ isPrepared }) => isPrepared)).toEqual([true, ...Array(21).fill(false)])
      expect(ages[1]).toEqual({
        seq: first[1]!.seq,
        id: texts[1]!.id,
        to: texts[1]!.to,
        whatsappId: texts[1]!.whatsappId,
        createdAt: 5,
        isPrepared: false,
      })
      expect(await store.messages.listQueuedAges(instanceId, 1, ages[1]!.seq)).toEqual([ages[2]])
    })

    test('the sequence numbers of one instance’s queued messages are listed within a range, the lowest first', async () => {
      const { store } = context
      const { instanceId } = await createConnected(store)
      const other = await createConnected(store)
      for (let count = 0; count < 5; count += 1) {
        await accept(store, instanceId)
        await accept(store, other.instanceId)
      }
      const seqs = (await store.messages.listQueued(instanceId, 10)).map(({ seq }) => seq)
      const list = (...range: [number, number, number]) => store.messages.listQueuedNumbers(instanceId, ...range)
      expect(await list(0, seqs[4]!, 10)).toEqual(seqs)
      expect(await list(seqs[0]!, seqs[3]!, 10)).toEqual(seqs.slice(1, 4))
      expect(await list(0, seqs[4]!, 2)).toEqual(seqs.slice(0, 2))
    })

    test('messages submitted together are queued in the order of submission', async () => {
      const { store } = context
      const { instanceId } = await createConnected(store)
      const messages = Array.from({ length: 40 }, () => newMessage(instanceId))
      await Promise.all(messages.map(message => store.messages.accept(message, 5)))
      const queued = await store.messages.listQueued(instanceId, 100)
      expect(queued.map(({ id }) => id)).toEqual(messages.map(({ id }) => id))
    })

    test('messages submitted together are stored unchanged', async () => {
      const { store } = context
      const { instanceId } = await createConnected(store)
      const written = ['plain', '"', '\\', '{a,b}', 'NULL', ' ', 'olá 👋', '\t\n', "'", '\\"', '1,2']
      await Promise.all(written.map(text => store.messages.accept(newMessage(instanceId, { text }), 5)))
      const queued = await store.messages.listQueued(instanceId, 100)
      expect(queued.map(({ text }) => text)).toEqual(written)
    })

    test('accepts messages while connected, or disconnected for less than five minutes, and not otherwise', async () => {
      const { harness, store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const kind = async () => (await store.messages.accept(newMessage(instanceId), 0)).kind
      await store.connections.record(lease, { state: 'reconnecting', reason: 'Lost.' }, 0)
      expect(await kind()).toBe('accepted')
      const old = Date.now() - 5 * 60_000
      await harness.execute(`update connections set last_connected_at = ${old} where instance_id = '${instanceId}'`)
      expect(await kind()).toBe('not_connected')
      for (const state of ['unlinked', 'linking', 'connecting', 'stopped', 'logged_out'] as const) {
        await store.connections.record(lease, { state, reason: state }, 0)
        expect(await kind()).toBe('not_connected')
      }
    })

    test('accepts scheduled messages from the first login on, because that login fails what was queued before it', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const plan = async () => (await store.messages.accept(newMessage(lease.instanceId, { notBefore: 1_000 }), 0)).kind
      for (const state of ['unlinked', 'linking', 'connecting', 'stopped'] as const) {
        await store.connections.record(lease, { state, reason: state }, 0)
        expect(await plan()).toBe('not_connected')
      }
      for (const state of ['connected', 'reconnecting', 'stopped'] as const) {
        await store.connections.record(lease, { state, reason: state, phone: '5511900000000' }, 0)
        expect(await plan()).toBe('accepted')
      }
      await store.connections.record(lease, { state: 'logged_out', reason: 'Logged out.', phone: null }, 0)
      expect(await plan()).toBe('not_connected')
    })

    test('a linked instance without a live owner counts as reconnecting', async () => {
      const { harness, store } = context
      const { instanceId } = await createConnected(store)
      await harness.execute(`update leases set lease_until = 0 where instance_id = '${instanceId}'`)
      expect(await store.messages.accept(newMessage(instanceId), 0)).toMatchObject({ kind: 'accepted' })
      const old = Date.now() - 5 * 60_000
      await harness.execute(`update connections set last_connected_at = ${old} where instance_id = '${instanceId}'`)
      expect(await store.messages.accept(newMessage(instanceId), 0)).toEqual({ kind: 'not_connected' })
    })

    test('an unknown or deleted instance accepts nothing', async () => {
      const { store } = context
      expect(await store.messages.accept(newMessage('inst_absent'), 0)).toEqual({ kind: 'no_instance' })
      const { instanceId } = await createConnected(store)
      await store.instances.delete(instanceId, 0)
      expect(await store.messages.accept(newMessage(instanceId), 0)).toEqual({ kind: 'no_instance' })
    })

    describe('an idempotency key', () => {
      test('a repeated call gets the first message, even if the instance is no longer connected', async () => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        const first = await accept(store, instanceId, { idempotency: idempotency('one') })
        const again = () => store.messages.accept(newMessage(instanceId, { idempotency: idempotency('one') }), 0)
        expect(await again()).toEqual({ kind: 'replayed', id: first.id })
        await store.connections.record(lease, { state: 'logged_out', reason: 'Logged out.' }, 0)
        expect(await again()).toEqual({ kind: 'replayed', id: first.id })
        expect(await store.messages.listQueued(instanceId, 10)).toHaveLength(1)
      })

      test('is refused with a different body', async () => {
        const { store } = context
        const { instanceId } = await createConnected(store)
        await accept(store, instanceId, { idempotency: idempotency('one', 'a') })
        const other = newMessage(instanceId, { idempotency: idempotency('one', 'b') })
        expect(await store.messages.accept(other, 0)).toEqual({ kind: 'key_reused' })
      })

      test('belongs to its instance', async () => {
        const { store } = context
        const [one, other] = [await createConnected(store), await createConnected(store)]
        await accept(store, one.instanceId, { idempotency: idempotency('one') })
        await accept(store, other.instanceId, { idempotency: idempotency('one', 'another body') })
      })

      test('is stored only with an accepted message', async () => {
        const { store } = context
        const lease = await createOwned(store)
        const message = newMessage(lease.instanceId, { idempotency: idempotency('one') })
        expect(await store.messages.accept(message, 0)).toEqual({ kind: 'not_connected' })
        await store.connections.record(lease, { state: 'connected', reason: 'Connected.' }, 0)
        await accept(store, lease.instanceId, { idempotency: idempotency('one', 'another body') })
      })

      test('is valid for 24 h', async () => {
        const { harness, store } = context
        const { instanceId } = await createConnected(store)
        const before = Date.now()
        await accept(store, instanceId, { idempotency: idempotency('one') })
        const after = Date.now()
        const [row] = await harness.execute(
          `select expires_at from idempotency_keys where instance_id = '${instanceId}'`,
        )
        const acceptedAt = Number(row!['expires_at']) - 24 * 60 * 60_000
        expect(acceptedAt).toBeGreaterThan(before - 1_000)
        expect(acceptedAt).toBeLessThan(after + 1_000)
        const past = Date.now() - 1
        await harness.execute(`update idempotency_keys set expires_at = ${past} where instance_id = '${instanceId}'`)
        const second = await accept(store, instanceId, { idempotency: idempotency('one', 'another body') })
        const repeat = newMessage(instanceId, { idempotency: idempotency('one', 'another body') })
        expect(await store.messages.accept(repeat, 0)).toEqual({ kind: 'replayed', id: second.id })
      })

      test('of a scheduled message is valid until 24 h after it has ended, however late that is', async () => {
        const { harness, store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        const scheduled = () => newMessage(instanceId, { notBefore: 5_000, idempotency: idempotency('one') })
        const first = scheduled()
        const replayed = { kind: 'replayed', id: first.id }
        expect(await store.messages.accept(first, 1_000)).toEqual({ kind: 'accepted', id: first.id })
        await harness.execute(`update idempotency_keys set expires_at = 1 where instance_id = '${instanceId}'`)
        expect(await store.messages.accept(scheduled(), 1_000)).toEqual(replayed)
        await store.messages.releaseDue(lease, 5_000)
        await store.messages.recordPrepared(lease, first.id, PREPARED)
        await store.messages.recordProgress(lease, first.whatsappId, 'sent', Date.now() - 23 * 60 * 60_000)
        expect(await store.messages.accept(scheduled(), 1_000)).toEqual(replayed)
        await harness.execute(`update messages set sent_at = sent_at - 7200000 where instance_id = '${instanceId}'`)
        expect(await store.messages.accept(scheduled(), 1_000)).toMatchObject({ kind: 'accepted' })
      })

      test('of fifty concurrent calls with one key, exactly one is accepted', async () => {
        const { store } = context
        const { instanceId } = await createConnected(store)
        for (let round = 0; round < 5; round += 1) {
          const key = idempotency(`round ${round}`)
          const outcomes = await Promise.all(
            Array.from({ length: 50 }, () => store.messages.accept(newMessage(instanceId, { idempotency: key }), 0)),
          )
          const accepted = outcomes.filter(({ kind }) => kind === 'accepted')
          expect(accepted).toHaveLength(1)
          const replayed = outcomes.filter(outcome => outcome.kind === 'replayed')
          expect(replayed).toHaveLength(49)
          expect(new Set(replayed.map(outcome => outcome.id))).toEqual(new Set([(accepted[0] as { id: string }).id]))
        }
        expect(await store.messages.listQueued(instanceId, 100)).toHaveLength(5)
      })
    })

    test('lists newest first, filtered by state, recipient and time', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const ids: string[] = []
      for (let count = 0; count < 6; count += 1) {
        const to = count % 2 === 0 ? '5511000000001' : '5511000000002'
        const message = newMessage(instanceId, { to, id: newMessageId(count) })
        await store.messages.accept(message, count)
        ids.unshift(message.id)
        await store.messages.recordPrepared(lease, message.id, PREPARED)
        if (count < 2) await store.messages.recordProgress(lease, message.whatsappId, 'sent', count)
      }
      const list = async (filter: Parameters<typeof store.messages.list>[2]) =>
        (await store.messages.list(instanceId, { limit: 10 }, filter)).data.map(({ id }) => id)
      expect(await list({})).toEqual(ids)
      expect(await list({ state: 'sent' })).toEqual([ids[4], ids[5]])
      expect(await list({ to: '5511000000001' })).toEqual([ids[1], ids[3], ids[5]])
      expect(await list({ since: 2, until: 5 })).toEqual([ids[1], ids[2], ids[3]])
      expect(await list({ state: 'queued', to: '5511000000002', since: 4 })).toEqual([ids[0]])
      const first = await store.messages.list(instanceId, { limit: 4 })
      await accept(store, instanceId)
      const second = await store.messages.list(instanceId, { limit: 4, cursor: first.nextCursor! })
      expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids)
      expect(second.nextCursor).toBeNull()
    })
  })
}
