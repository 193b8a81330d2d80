import { expect, test } from 'vitest'
import { incomingBody } from '../../../domain/events/event.ts'
import type { Message } from '../../../domain/message.ts'
import { conversationViews } from './conversation.ts'

const GROUP = '120363000000000042@g.us'

function message(id: string, to: string, createdAt: number): Message {
  const never = {
    sentAt: null,
    deliveredAt: null,
    readAt: null,
    failedAt: null,
    editedAt: null,
    deletedAt: null,
    failure: null,
  }
  return { id, whatsappId: 'WA1', state: 'sent', to, text: `text of ${id}`, createdAt, ...never }
}

function received(id: string, createdAt: number, more: { from: string; text?: string; group?: string; name?: string }) {
  return {
    id,
    createdAt,
    body: incomingBody('inst_1', 'msg_0', {
      id,
      type: 'text',
      sentAt: createdAt,
      chat: more.group ?? more.from,
      lid: null,
      username: null,
      ...more,
    }),
  }
}

test('sent and received messages are grouped by the other party, in the order of time', () => {
  const views = conversationViews(
    [message('msg_2', '5511', 20), message('msg_1', '5522', 10)],
    [received('evt_1', 15, { from: '5511', text: 'first', name: 'Ana' }), received('evt_2', 30, { from: '5522' })],
  )
  expect(views.map(({ with: address, name, lines }) => [address, name, lines.map(({ id }) => id)])).toEqual([
    ['5522', null, ['msg_1', 'evt_2']],
    ['5511', 'Ana', ['evt_1', 'msg_2']],
  ])
  expect(views[0]?.lines[1]).toMatchObject({ direction: 'in', text: '', status: null, from: null })
})

test('in a group every received message names its sender, and the group has no name', () => {
  const [view] = conversationViews([], [received('evt_1', 1, { from: '5511', text: 'Hi', group: GROUP, name: 'Ana' })])
  expect(view).toMatchObject({ with: GROUP, name: null, lines: [{ from: '5511', name: 'Ana' }] })
})

test('a message whose contact was erased is in no conversation', () => {
  const erased = { id: 'evt_1', createdAt: 1, body: JSON.stringify({ data: { id: 'msg_0', erased: true } }) }
  expect(conversationViews([], [erased])).toEqual([])
})
