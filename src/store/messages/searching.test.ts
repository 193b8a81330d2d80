import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FEW, type Slice, search, WINDOW } from './searching.ts'

test('finds the same rows as one query over all rows, reading one window at a time', async () => {
  const property = fc.asyncProperty(
    fc.nat({ max: 3 * WINDOW }),
    fc.nat({ max: 2_000 }),
    fc.integer({ min: 1, max: 20 }),
    fc.constantFrom(WINDOW, FEW),
    async (count, every, limit, first) => {
      const rows = Array.from({ length: count }, (_, index) => String(count - index).padStart(6, '0'))
      const within = ({ below, from }: Slice) => rows.filter(row => row < below && row >= from)
      const wanted = (row: string) => Number(row) % (every + 1) === 0
      const edge = async (slice: Slice, distance: number) => within(slice)[distance] ?? null
      const find = async (slice: Slice, at: number, among: number) => {
        expect(within(slice).length).toBeLessThanOrEqual(among)
        expect(among).toBeLessThanOrEqual(WINDOW + 1)
        expect(at, 'it stops when it has found enough').toBeGreaterThan(0)
        return within(slice).filter(wanted).slice(0, at)
      }
      const found = await search('inst_1', { below: '~', from: '' }, limit, edge, find, first)
      expect(found).toEqual(rows.filter(wanted).slice(0, limit))
    },
  )
  await fc.assert(property, { numRuns: 30 })
})

test('of many concurrent searches, one reads a window in a turn of the event loop, and instances take turns', async () => {
  let turn = 0
  let isOver = false
  const countTurns = (): void => {
    turn += 1
    if (!isOver) setImmediate(countTurns)
  }
  setImmediate(countTurns)
  const reads: { turn: number; instanceId: string }[] = []
  const run = (instanceId: string) => {
    const edge = async () => {
      reads.push({ turn, instanceId })
      return reads.length < 30 ? '0' : null
    }
    return search(instanceId, { below: '~', from: '' }, 1, edge, async () => [])
  }
  await Promise.all([...Array.from({ length: 10 }, () => run('busy')), run('other')])
  isOver = true
  expect(new Set(reads.map(read => read.turn)).size).toBe(reads.length)
  expect(reads.slice(0, 4).map(({ instanceId }) => instanceId)).toEqual(['busy', 'other', 'busy', 'other'])
})
