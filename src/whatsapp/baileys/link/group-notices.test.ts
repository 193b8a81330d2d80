import { EventEmitter } from 'node:events'
import type { BinaryNode, WASocket } from 'baileys'
import { expect, test } from 'vitest'
import type { GroupNotice } from '../../../domain/recipients/group.ts'
import type { LibraryCalls } from '../library-scope.ts'
import { recordGroupChanges } from './group-notices.ts'

const GROUP = '120363000000000777@g.us'

test.each([
  ['without a group', undefined],
  ['with a group without an ID', [{ tag: 'group', attrs: { subject: 'Team' } }]],
])('a notice of a new group %s is left to Baileys, which acknowledges it', (_, content) => {
  const ws = new EventEmitter()
  const handled: unknown[] = []
  ws.on('CB:notification', ({ attrs }: BinaryNode) => void handled.push(attrs['id']))
  const socket = { ws, ev: new EventEmitter() } as unknown as WASocket
  const record = async () => expect.unreachable()
  recordGroupChanges(socket, {
    events: { groupChanged: record, groupsListed: record },
    calls: { closed: new AbortController().signal } as LibraryCalls,
    onFailed: () => expect.unreachable(),
  })
  const create: BinaryNode = { tag: 'create', attrs: {}, ...(content && { content }) }
  ws.emit('CB:notification', { tag: 'notification', attrs: { id: 'N', from: GROUP, type: 'w:gp2' }, content: [create] })
  expect(handled).toEqual(['N'])
})

test.each<[string, string | undefined, GroupNotice | null]>([
  ['by its ID and time', '1700000000', { id: 'N', at: 1_700_000_000 }],
  ['not at all if it has no time', undefined, null],
  ['not at all if its time is no number', 'now', null],
])('a notice that is delivered again is recognised %s', (_, t, expected) => {
  const ws = new EventEmitter()
  const reported: unknown[] = []
  recordGroupChanges({ ws, ev: new EventEmitter() } as unknown as WASocket, {
    events: { groupChanged: async (...report) => void reported.push(report), groupsListed: () => undefined },
    calls: { closed: new AbortController().signal } as LibraryCalls,
    onFailed: () => expect.unreachable(),
  })
  const attrs = { id: 'N', from: GROUP, type: 'w:gp2', ...(t !== undefined && { t }) }
  ws.emit('CB:notification', { tag: 'notification', attrs, content: [{ tag: 'subject', attrs: { subject: 'B' } }] })
  expect(reported).toEqual([[GROUP, [{ kind: 'subject', subject: 'B' }], expected]])
})
