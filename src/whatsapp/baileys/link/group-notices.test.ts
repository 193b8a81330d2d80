import { EventEmitter } from 'node:events'
import type { BinaryNode, WASocket } from 'baileys'
import { expect, test } from 'vitest'
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
