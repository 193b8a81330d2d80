import { expect, test } from 'vitest'
import { newEventId, newInstanceId, newMessageId } from './ids.ts'

test('ids have the shape that the docs give them', () => {
  expect(newInstanceId()).toMatch(/^inst_[0-9a-z]{12}$/)
  expect(newMessageId(Date.now())).toMatch(/^msg_[0-9a-z]{26}$/)
  expect(newEventId(Date.now())).toMatch(/^evt_[0-9a-z]{26}$/)
})

test('an id made later sorts after one made earlier', () => {
  const times = [0, 1, 31, 32, 1_700_000_000_000, 1_700_000_000_001, 2 ** 47]
  const ids = times.map(newEventId)
  expect([...ids].sort()).toEqual(ids)
})
