import { expect, test, vi } from 'vitest'
import { createGroupDirectory } from '../../../test/units/group-directory.ts'
import type { LookedUpNumber, Numbers } from '../../store/numbers/numbers.ts'
import type { LookUp } from '../baileys/look-up.ts'
import { AddressBook } from './address-book.ts'

const NUMBER = '5511987654321'
const FOUND_MS = 1_000

/** A store that keeps look-ups for a second, and a WhatsApp that knows the number under this address. */
function stage(address: string | null) {
  const clock = { now: 0 }
  const rows = new Map<string, LookedUpNumber>()
  const numbers = {
    find: vi.fn(async (_: string, number: string, now: number) => {
      const row = rows.get(number)
      return row && row.expiresAt > now ? row : null
    }),
    record: async (_: unknown, number: string, found: string | null, now: number) => {
      rows.set(number, { address: found, expiresAt: now + FOUND_MS })
    },
    isContact: async () => false,
  }
  const link = {
    lookUp: vi.fn(async (): Promise<LookUp> => (address === null ? { kind: 'absent' } : { kind: 'found', address })),
    queryGroup: vi.fn(),
    self: {},
  }
  const book = new AddressBook({
    lease: { instanceId: 'inst_1', owner: 'node', epoch: 1 },
    numbers: numbers as Partial<Numbers> as Numbers,
    groups: createGroupDirectory().groups,
    now: () => clock.now,
    signal: new AbortController().signal,
  })
  return { book, link, numbers, clock }
}

test('a repeated recipient costs one query of the store, and one look-up each time the answer has expired', async () => {
  const { book, link, numbers, clock } = stage('551187654321@s.whatsapp.net')
  const found = { kind: 'found', address: '551187654321@s.whatsapp.net' }
  for (let count = 0; count < 5; count += 1) expect(await book.find(NUMBER, link)).toEqual(found)
  expect(link.lookUp).toHaveBeenCalledTimes(1)
  // Once before the look-up and once after it.
  expect(numbers.find).toHaveBeenCalledTimes(2)
  clock.now = FOUND_MS - 1
  await book.find(NUMBER, link)
  expect(link.lookUp).toHaveBeenCalledTimes(1)
  clock.now = FOUND_MS
  expect(await book.find(NUMBER, link)).toEqual(found)
  expect(link.lookUp).toHaveBeenCalledTimes(2)
})

test('a number that was not on WhatsApp is refused until the next look-up', async () => {
  const { book, link, clock } = stage(null)
  const refused = { kind: 'refused', failure: { code: 'recipient_not_on_whatsapp' } }
  for (let count = 0; count < 3; count += 1) expect(await book.find(NUMBER, link)).toMatchObject(refused)
  expect(link.lookUp).toHaveBeenCalledTimes(1)
  clock.now = FOUND_MS
  link.lookUp.mockResolvedValue({ kind: 'found', address: `${NUMBER}@s.whatsapp.net` })
  expect(await book.find(NUMBER, link)).toMatchObject({ kind: 'found' })
})

test('the numbers that an answer may come from include the one in the recipient’s address', async () => {
  const { book, link, numbers } = stage('551187654321@s.whatsapp.net')
  await book.find(NUMBER, link)
  expect(await book.findContactStatus(NUMBER)).toEqual({ known: false, numbers: [NUMBER, '551187654321'] })
  expect(numbers.find).toHaveBeenCalledTimes(2)
})
