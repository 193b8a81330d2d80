import { expect, test } from 'vitest'
import type { ChatEntry } from '../../api/types.ts'
import { linesOf } from './lines.ts'

const TEXTS = [1, 2].map(
  number => ({ id: `msg_${number}`, direction: 'in', type: 'text', text: `Text ${number}`, chat: '551' }) as ChatEntry,
)
const REACTION = {
  id: 'msg_3',
  direction: 'in',
  type: 'reaction',
  from: '551',
  phone: '551',
  name: 'Ana',
  reaction: { messageId: 'msg_1', emoji: '👍' },
} as ChatEntry

test('lines that did not change stay the same objects', () => {
  const before = linesOf(TEXTS)
  const same = linesOf(structuredClone(TEXTS), before)
  expect(same.map((line, index) => line === before[index])).toEqual([true, true])
  const after = linesOf([REACTION, ...structuredClone(TEXTS)], before)
  expect(after.filter(line => !before.includes(line))).toMatchObject([
    { line: { id: 'msg_1' }, reactions: [{ emoji: '👍', by: 'Ana' }] },
  ])
})
