import { describe, expect, test } from 'vitest'
import type { ChatEntry, ChatLine } from '../../api/types.ts'
import { en } from '../../i18n/en.ts'
import { linesOf, previewOf, startOf } from './lines.ts'

const TEXTS = [1, 2].map(
  number => ({ id: `msg_${number}`, direction: 'in', type: 'text', text: `Text ${number}`, chat: '551' }) as ChatEntry,
)
const REACTION = {
  id: 'msg_3',
  direction: 'in',
  type: 'reaction',
  from: '551',
  phone: '551',
  chat: '551',
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

test('the preview of a huge text is its beginning, and no character is cut in half', () => {
  const line = { ...TEXTS[0], deletedAt: null, text: `.${'👍'.repeat(100_000)}` } as ChatLine
  expect(previewOf(line, en)).toBe(`.${'👍'.repeat(499)}`)
  expect(startOf(line, en)).toBe(`.${'👍'.repeat(199)}…`)
})

describe('a person who changes a reaction has one', () => {
  const reactions = (changed: Partial<ChatEntry>, first: Partial<ChatEntry>) =>
    linesOf([
      { ...REACTION, ...changed, id: 'msg_4', reaction: { messageId: 'msg_1', emoji: '🎉' } } as ChatEntry,
      { ...REACTION, ...first } as ChatEntry,
      ...TEXTS,
    ]).find(({ line }) => line.id === 'msg_1')?.reactions
  const changed = [{ emoji: '🎉', by: 'Ana' }]
  const group = '120363000000000001@g.us'
  const byLid = { from: '77', phone: null, lid: '77@lid' }
  const byBoth = { from: '551', phone: '551', lid: '77@lid' }
  const byNumber = { from: '551', phone: '551', lid: null }

  test('when the phone number becomes known', () => {
    expect(reactions({ ...byBoth, chat: '551' }, { ...byLid, chat: '77@lid' })).toEqual(changed)
    expect(reactions({ ...byBoth, chat: group }, { ...byLid, chat: group })).toEqual(changed)
    expect(reactions({ ...byNumber, chat: '551' }, { ...byLid, chat: '77@lid' })).toEqual(changed)
  })

  test('when the LID becomes known', () => {
    expect(reactions({ ...byBoth, chat: group }, { ...byNumber, chat: group })).toEqual(changed)
  })

  test('while another member of the group keeps theirs', () => {
    const other = { from: '88', phone: null, lid: '88@lid', chat: group }
    expect(reactions({ ...byBoth, chat: group }, other)).toHaveLength(2)
  })
})
