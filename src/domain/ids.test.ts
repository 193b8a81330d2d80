import { expect, test } from 'vitest'
import { firstEventId, firstMessageId, newEventId, newInstanceId, newMessageId } from './ids.ts'

test('IDs have the documented format', () => {
  expect(newInstanceId()).toMatch(/^inst_[0-9a-z]{12}$/)
  expect(newMessageId(Date.now())).toMatch(/^msg_[0-9a-z]{26}$/)
  expect(newEventId(Date.now())).toMatch(/^evt_[0-9a-z]{26}$/)
})

test('an ID sorts after every earlier one', () => {
  const times = [0, 1, 31, 32, 1_700_000_000_000, 1_700_000_000_001, 2 ** 47]
  const ids = times.map(newEventId)
  expect([...ids].sort()).toEqual(ids)
})

test('IDs created in one millisecond sort in the order of their creation', () => {
  const ids = Array.from({ length: 2_000 }, () => newMessageId(5))
  expect([...ids].sort()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
})

test('the first ID of a moment sorts between the IDs created before it and those created since', () => {
  const at = 1_700_000_000_000
  expect(firstMessageId(at) > newMessageId(at - 1)).toBe(true)
  expect(firstMessageId(at) < newMessageId(at)).toBe(true)
  expect(firstEventId(at) > newEventId(at - 1)).toBe(true)
  expect(firstEventId(at) < newEventId(at)).toBe(true)
  expect(firstEventId(-1) < newEventId(0)).toBe(true)
})
