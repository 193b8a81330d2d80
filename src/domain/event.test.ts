import { describe, expect, test } from 'vitest'
import { failureBody, incomingBody, incomingKey, progressBody } from './event.ts'
import { messageFailure } from './message.ts'

const SUBJECT = { instanceId: 'inst_1', messageId: 'msg_1', to: '5511987654321' }
const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 6)

describe('the bytes of an event', () => {
  test('hold exactly event, instanceId, timestamp and data', () => {
    expect(JSON.parse(progressBody(SUBJECT, 'delivered', AT))).toEqual({
      event: 'message.delivered',
      instanceId: 'inst_1',
      timestamp: '2026-01-02T03:04:05.006Z',
      data: { id: 'msg_1', to: '5511987654321', status: 'delivered' },
    })
  })

  test('of a failure hold its code and sentence too', () => {
    expect(JSON.parse(failureBody(SUBJECT, messageFailure('expired'), AT)).data).toEqual({
      id: 'msg_1',
      to: '5511987654321',
      status: 'failed',
      error: messageFailure('expired'),
    })
  })

  test('of an incoming message hold what is known, under WhatsApp’s time', () => {
    const message = {
      id: 'A1',
      from: '551198',
      type: 'text',
      text: 'oi',
      group: '1@g.us',
      name: 'Ana',
      sentAt: AT,
    } as const
    expect(JSON.parse(incomingBody('inst_1', message))).toEqual({
      event: 'message.received',
      instanceId: 'inst_1',
      timestamp: '2026-01-02T03:04:05.006Z',
      data: { id: 'A1', from: '551198', type: 'text', text: 'oi', group: '1@g.us', name: 'Ana' },
    })
    expect(JSON.parse(incomingBody('inst_1', { id: 'A1', from: '5', type: 'image', sentAt: AT })).data).toEqual({
      id: 'A1',
      from: '5',
      type: 'image',
    })
  })
})

test('one WhatsApp id is two messages when chat or sender differ', () => {
  const message = { id: 'A1', from: '5', type: 'text', sentAt: AT } as const
  const keys = [message, { ...message, group: '1@g.us' }, { ...message, from: '6' }, { ...message, id: 'A2' }].map(
    incomingKey,
  )
  expect(new Set(keys).size).toBe(4)
  expect(incomingKey({ ...message, sentAt: 0 })).toBe(keys[0])
})
