import { describe, expect, test } from 'vitest'
import { createConnected, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const numbersFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => `${5_511_900_000_000 + first + index}`)

export function numberOrdersContract(createHarness: CreateHarness): void {
  describe('orders to look up numbers', () => {
    const context = withStore(createHarness)

    test('count against the budget of their instance once, even if they come at the same time', async () => {
      const { numbers } = context.store
      const { instanceId } = await createConnected(context.store)
      const other = await createConnected(context.store)
      const orders = Array.from({ length: 6 }, (_, index) => numbers.order(instanceId, numbersFrom(index * 2, 4), 10))
      const kinds = (await Promise.all(orders)).map(({ kind }) => kind)
      // Each call but the first names two new numbers, so the fifth would be the one with the twelfth.
      expect(kinds.filter(kind => kind === 'ordered')).toHaveLength(4)
      expect(await numbers.listOrders(instanceId)).toHaveLength(10)
      expect(await numbers.order(instanceId, numbersFrom(100, 1), 10)).toMatchObject({ kind: 'spent', left: 0 })
      expect(await numbers.order(instanceId, numbersFrom(0, 2), 10)).toEqual({ kind: 'ordered' })
      expect(await numbers.order(other.instanceId, numbersFrom(0, 10), 10)).toEqual({ kind: 'ordered' })
    })

    test('are all refused if one exceeds the budget, which is renewed within a day', async () => {
      const { numbers } = context.store
      const { instanceId } = await createConnected(context.store)
      await numbers.order(instanceId, numbersFrom(0, 3), 5)
      const refused = await numbers.order(instanceId, numbersFrom(3, 3), 5)
      expect(refused).toEqual({ kind: 'spent', left: 2, renewsInMs: expect.any(Number) })
      if (refused.kind === 'spent') expect(refused.renewsInMs).toBeLessThanOrEqual(24 * 60 * 60_000)
      expect(await numbers.listOrders(instanceId)).toHaveLength(3)
    })

    test('stay spent after they are settled', async () => {
      const { numbers } = context.store
      const lease = await createConnected(context.store)
      const [number = ''] = numbersFrom(0, 1)
      await numbers.order(lease.instanceId, [number], 1)
      await numbers.record(lease, number, `${number}@s.whatsapp.net`, 1_000)
      await numbers.settleOrder(lease, number)
      expect(await numbers.listOrders(lease.instanceId)).toEqual([])
      expect((await numbers.findMany(lease.instanceId, [number, '5511000000000'], 1_000)).get(number)).toMatchObject({
        address: `${number}@s.whatsapp.net`,
      })
      expect(await numbers.order(lease.instanceId, numbersFrom(1, 1), 1)).toMatchObject({ kind: 'spent' })
    })
  })
}
