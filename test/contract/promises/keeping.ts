import { describe, expect, test } from 'vitest'
import { LeaseLost } from '../../../src/store/errors.ts'
import type { Lease } from '../../../src/store/leases/leases.ts'
import { createConnected, createOwned, incoming, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS

/** Credentials, look-ups of numbers, and the sandbox's state. */
export function keepingContract(createHarness: CreateHarness): void {
  describe('credentials', () => {
    const context = withStore(createHarness)
    const bytes = (text: string) => Buffer.from(text)

    test('are returned unchanged, by type and ID', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const blob = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
      await store.credentials.set(lease, [
        { type: 'session', id: '1', value: blob },
        { type: 'session', id: '2', value: bytes('two') },
        { type: 'pre-key', id: '1', value: bytes('other type') },
        { type: 'pre-key', id: 'empty', value: bytes('') },
      ])
      const sessions = await store.credentials.get(lease.instanceId, 'session', ['1', '2', '3', '1'])
      expect([...sessions].map(([id, value]) => [id, Buffer.from(value)]).toSorted()).toEqual([
        ['1', blob],
        ['2', bytes('two')],
      ])
      expect((await store.credentials.get(lease.instanceId, 'pre-key', ['empty'])).get('empty')).toHaveLength(0)
      expect(await store.credentials.get('inst_other', 'session', ['1'])).toEqual(new Map())
      expect(await store.credentials.get(lease.instanceId, 'session', [])).toEqual(new Map())
    })

    test('are replaced and removed; the last change in a call wins', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const set = (...values: (string | null)[]) =>
        store.credentials.set(
          lease,
          values.map(value => ({ type: 't', id: 'x', value: value === null ? null : bytes(value) })),
        )
      const get = async () => (await store.credentials.get(lease.instanceId, 't', ['x'])).get('x')
      await set('a')
      await set('b', 'c')
      expect(Buffer.from((await get())!).toString()).toBe('c')
      await set('d', null)
      expect(await get()).toBeUndefined()
      await set(null, 'e')
      expect(Buffer.from((await get())!).toString()).toBe('e')
      await set()
      await store.credentials.clear(lease)
      expect(await get()).toBeUndefined()
    })

    test('calls take effect in their order, even if none is awaited', async () => {
      const { store } = context
      const leases = await Promise.all([1, 2, 3].map(() => createOwned(store)))
      const calls: Promise<void>[] = []
      for (let round = 0; round < 30; round += 1) {
        for (const lease of leases) {
          if (round % 7 === 3) calls.push(store.credentials.clear(lease))
          calls.push(
            store.credentials.set(lease, [
              { type: 't', id: 'same', value: bytes(`${round}`) },
              { type: 't', id: `only ${round}`, value: bytes('x') },
            ]),
          )
        }
      }
      await Promise.all(calls)
      for (const lease of leases) {
        const found = await read(lease, Array.from({ length: 30 }, (_, round) => `only ${round}`).concat('same'))
        expect(found.get('same')).toBe('29')
        expect([...found.keys()].filter(id => id.startsWith('only'))).toHaveLength(6)
      }
    })

    test('a value moved to another row cannot be decrypted', async () => {
      const { harness, store } = context
      const lease = await createOwned(store)
      await store.credentials.set(lease, [
        { type: 't', id: 'a', value: bytes('a') },
        { type: 't', id: 'b', value: bytes('b') },
      ])
      const of = `instance_id = '${lease.instanceId}'`
      await harness.execute(
        `update credentials set value = (select value from credentials where ${of} and id = 'a') where ${of} and id = 'b'`,
      )
      expect((await read(lease, ['a'])).get('a')).toBe('a')
      await expect(store.credentials.get(lease.instanceId, 't', ['b'])).rejects.toThrow()
    })

    async function read(lease: Lease, ids: string[]): Promise<Map<string, string>> {
      const found = await context.store.credentials.get(lease.instanceId, 't', ids)
      return new Map([...found].map(([id, value]) => [id, Buffer.from(value).toString()]))
    }
  })

  describe('numbers', () => {
    const context = withStore(createHarness)

    test('a number on WhatsApp is cached for 7 days, another one for an hour', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const find = (number: string, now: number) => store.numbers.find(lease.instanceId, number, now)
      expect(await find('551', 0)).toBeNull()
      await store.numbers.record(lease, '551', '551@s.whatsapp.net', 0)
      await store.numbers.record(lease, '552', null, 0)
      expect(await find('551', 7 * DAY_MS - 1)).toEqual({ address: '551@s.whatsapp.net', expiresAt: 7 * DAY_MS })
      expect(await find('551', 7 * DAY_MS)).toBeNull()
      expect(await find('552', HOUR_MS - 1)).toEqual({ address: null, expiresAt: HOUR_MS })
      expect(await find('552', HOUR_MS)).toBeNull()
      await store.numbers.record(lease, '552', '552@s.whatsapp.net', HOUR_MS)
      expect(await find('552', HOUR_MS)).toEqual({ address: '552@s.whatsapp.net', expiresAt: HOUR_MS + 7 * DAY_MS })
      expect(await store.numbers.find('inst_other', '551', 0)).toBeNull()
    })

    test.each([
      ['the person', '5511987650001', { from: '5511987650001' }],
      ['the other spelling', '5511987650002', { from: '551187650002' }],
      ['the LID', '990000007650003@lid', { from: '990000007650003', addressing: 'lid', lid: '990000007650003@lid' }],
      ['the number of the LID', '990000007650004@lid', { from: '5511987650004', lid: '990000007650004@lid' }],
    ] as const)('that was not found is looked up again, once, after a message from %s', async (_, to, by) => {
      const { store } = context
      const lease = await createOwned(store)
      const find = (now: number) => store.numbers.find(lease.instanceId, to, now)
      await store.events.storeIncoming(lease, incoming(by), 1)
      await store.numbers.record(lease, to, null, HOUR_MS)
      expect(await find(HOUR_MS)).toMatchObject({ address: null })
      await store.events.storeIncoming(lease, incoming(by), HOUR_MS + 1)
      expect(await find(HOUR_MS + 1)).toBeNull()
      await store.numbers.record(lease, to, null, HOUR_MS + 2)
      expect(await find(HOUR_MS + 2)).toMatchObject({ address: null })
    })

    test.each([
      ['the person', '5511987650001'],
      ['the other spelling', '551187650001'],
    ])('that were not found are checked again, once, after a message from %s', async (_, from) => {
      const { store } = context
      const lease = await createOwned(store)
      const [writer, other, found] = ['5511987650001', '5511987650002', '5511987650003']
      const find = async (now: number) => {
        const known = await store.numbers.findMany(lease.instanceId, [writer, other, found], now)
        return [...known.keys()].sort()
      }
      for (const number of [writer, other]) await store.numbers.record(lease, number, null, HOUR_MS)
      await store.numbers.record(lease, found, `${found}@s.whatsapp.net`, HOUR_MS)
      for (const by of [from, found]) await store.events.storeIncoming(lease, incoming({ from: by }), HOUR_MS + 1)
      expect(await find(HOUR_MS + 1)).toEqual([other, found])
      await store.numbers.record(lease, writer, null, HOUR_MS + 2)
      expect(await find(HOUR_MS + 2)).toEqual([writer, other, found])
    })
  })

  describe('the sandbox', () => {
    const context = withStore(createHarness)

    test('returns the written records of each instance', async () => {
      const { store } = context
      const [a, b] = [await createConnected(store), await createConnected(store)]
      const value = (text: string) => new Uint8Array(Buffer.from(text))
      const read = async (scope: string) =>
        new Map([...(await store.sandbox.read(scope))].map(([key, bytes]) => [key, Buffer.from(bytes).toString()]))
      expect(await read(a.instanceId)).toEqual(new Map())
      await store.sandbox.write(a, [
        { key: 'x', value: value('1') },
        { key: 'y', value: value('2') },
      ])
      await store.sandbox.write(b, [{ key: 'x', value: value('other') }])
      await Promise.all([
        store.sandbox.write(a, [{ key: 'x', value: value('3') }]),
        store.sandbox.write(a, [
          { key: 'y', value: null },
          { key: 'z', value: value('') },
        ]),
        store.sandbox.write(a, [{ key: 'x', value: value('4') }]),
      ])
      expect(await read(a.instanceId)).toEqual(
        new Map([
          ['x', '4'],
          ['z', ''],
        ]),
      )
      expect(await read(b.instanceId)).toEqual(new Map([['x', 'other']]))
    })

    test('an order for a phone is returned once, to the owner, and its answer is returned once, to any caller', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const { phoneOrders: orders } = store
      expect(await orders.take(lease)).toEqual([])
      await orders.leave(instanceId, 'a', 'first')
      await orders.leave(instanceId, 'b', 'second')
      await orders.leave(instanceId, 'a', 'first')
      expect(await orders.takeAnswer(instanceId, 'a')).toBeNull()
      const taken = await orders.take(lease)
      expect(taken.toSorted((x, y) => (x.id < y.id ? -1 : 1))).toEqual([
        { id: 'a', body: 'first' },
        { id: 'b', body: 'second' },
      ])
      await orders.leave(instanceId, 'a', 'first')
      expect(await orders.take(lease)).toEqual([])
      await orders.answer(lease, 'a', 'done')
      expect(await orders.takeAnswer(instanceId, 'b')).toBeNull()
      expect(await orders.takeAnswer(instanceId, 'a')).toBe('done')
      expect(await orders.takeAnswer(instanceId, 'a')).toBeNull()
      await expect(orders.take({ ...lease, epoch: lease.epoch - 1 })).rejects.toThrow(LeaseLost)
    })

    test('an order for a phone is not returned after its caller has given up, or after the clock was set back', async () => {
      const { store, harness } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const { phoneOrders: orders } = store
      for (const [id, moveMs] of [
        ['taken', 0],
        ['late', -6_000],
        ['early', 10_000],
        ['recent', -3_000],
      ] as const) {
        await orders.leave(instanceId, id, id)
        if (id === 'taken') await orders.take(lease)
        await harness.execute(`update phone_orders set left_at = left_at + ${moveMs} where id = '${id}'`)
      }
      expect(await orders.take(lease)).toEqual([{ id: 'recent', body: 'recent' }])
      const rows = await harness.execute(`select id from phone_orders where instance_id = '${instanceId}' order by id`)
      expect(rows).toEqual([{ id: 'recent' }, { id: 'taken' }])
    })
  })
}
