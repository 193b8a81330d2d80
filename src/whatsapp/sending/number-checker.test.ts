import { expect, test, vi } from 'vitest'
import { createGroupDirectory } from '../../../test/units/group-directory.ts'
import type { Hints } from '../../store/hints.ts'
import type { Numbers } from '../../store/numbers/numbers.ts'
import type { Link } from '../baileys/link.ts'
import { AddressBook, type FoundAddress } from './address-book.ts'
import { NumberChecker } from './number-checker.ts'

test('after WhatsApp has limited the rate, orders end without an answer, and nothing is asked for a minute', async () => {
  let now = 1_000
  const open = new Set(Array.from({ length: 50 }, (_, index) => `${5_511_900_000_000 + index}`))
  const numbers = {
    listOrders: async () => [...open],
    settleOrder: async (_: unknown, number: string) => void open.delete(number),
  } as Partial<Numbers> as Numbers
  const findNumber = vi.fn(async (): Promise<FoundAddress> => ({ kind: 'unanswered', why: 'rate_limited' }))
  const checker = new NumberChecker({
    lease: { instanceId: 'inst_0', owner: 'node', epoch: 1 },
    store: { numbers, hints: { on: () => () => undefined } as Partial<Hints> as Hints },
    addresses: { findNumber, forget: () => undefined },
    now: () => now,
    signal: new AbortController().signal,
    onFailed: error => {
      throw error
    },
  })
  const link = { closed: new AbortController().signal } as Link
  const settle = async () => {
    checker.attach(link)
    await vi.waitFor(() => expect(open.size).toBe(0), 30_000)
  }
  await settle()
  // The look-ups that were under way at the same time.
  expect(findNumber.mock.calls.length).toBeLessThanOrEqual(5)
  findNumber.mockClear()
  now += 59_999
  open.add('5511999990000')
  await settle()
  expect(findNumber).not.toHaveBeenCalled()
  now += 1
  open.add('5511999990000')
  await settle()
  expect(findNumber).toHaveBeenCalledTimes(1)
})

test('a number that was looked up before its contact was erased is looked up again and recorded', async () => {
  const number = '5511987654321'
  const found = { address: `${number}@s.whatsapp.net`, expiresAt: 1_000 }
  const rows = new Map([[number, found]])
  const open = new Set<string>()
  const numbers = {
    listOrders: async () => [...open],
    settleOrder: async (_: unknown, settled: string) => void open.delete(settled),
    find: async () => rows.get(number) ?? null,
    record: async () => void rows.set(number, found),
  } as Partial<Numbers> as Numbers
  const signal = new AbortController().signal
  const lease = { instanceId: 'inst_0', owner: 'node', epoch: 1 }
  const now = () => 0
  const addresses = new AddressBook({ lease, numbers, groups: createGroupDirectory().groups, now, signal })
  const checker = new NumberChecker({
    lease,
    store: { numbers, hints: { on: () => () => undefined } as Partial<Hints> as Hints },
    addresses,
    now,
    signal,
    onFailed: error => {
      throw error
    },
  })
  const lookUp = vi.fn(async () => ({ kind: 'found' as const, address: found.address }))
  const link: Pick<Link, 'lookUp' | 'closed'> = { closed: signal, lookUp }
  await addresses.findNumber(number, link)
  expect(lookUp).not.toHaveBeenCalled()
  rows.delete(number)
  open.add(number)
  checker.attach(link)
  await vi.waitFor(() => expect(open.size).toBe(0))
  expect(lookUp).toHaveBeenCalledTimes(1)
  expect(rows.has(number)).toBe(true)
})
