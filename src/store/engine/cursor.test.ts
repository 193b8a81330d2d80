import { describe, expect, test } from 'vitest'
import { InvalidCursor } from '../errors.ts'
import { idBefore, seqBefore, TOP, toPage } from './cursor.ts'

const ROWS = ['evt_3', 'evt_2', 'evt_1']
const page = (rows: string[], limit: number) =>
  toPage(
    rows,
    limit,
    row => row,
    row => row,
  )

describe('a page', () => {
  test('ends with a cursor, below which the next page starts', () => {
    const { data, nextCursor } = page(ROWS, 2)
    expect(data).toEqual(['evt_3', 'evt_2'])
    expect(idBefore({ cursor: nextCursor!, limit: 2 }, 'evt')).toBe('evt_2')
    const bySeq = toPage(
      [9, 8],
      1,
      seq => seq,
      seq => seq,
    )
    expect(seqBefore({ cursor: bySeq.nextCursor!, limit: 1 })).toBe(9)
  })

  test('refuses a cursor of another list', () => {
    const { nextCursor } = page(ROWS, 2)
    expect(() => idBefore({ cursor: nextCursor!, limit: 2 }, 'msg')).toThrow(InvalidCursor)
  })

  test('has no cursor if it is the last one', () => {
    expect(page(ROWS, 3).nextCursor).toBeNull()
    expect(page([], 3)).toEqual({ data: [], nextCursor: null })
  })

  test('starts at the top without a cursor', () => {
    expect(idBefore({ limit: 1 }, 'msg')).toBe(TOP)
    expect(TOP > 'msg_zzzz').toBe(true)
  })

  test.each([
    '',
    'nonsense',
    '%00',
    'LTE=',
    Buffer.from('-1').toString('base64url'),
    Buffer.from("' or 1").toString('base64url'),
  ])('refuses %j, which is not a cursor', cursor => {
    expect(() => idBefore({ cursor, limit: 1 }, 'evt')).toThrow(InvalidCursor)
    expect(() => seqBefore({ cursor, limit: 1 })).toThrow(InvalidCursor)
  })
})
