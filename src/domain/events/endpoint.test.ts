import { expect, test } from 'vitest'
import { DEFAULT_EVENTS, EVENT_GROUPS, isPattern, isSubscribed } from './endpoint.ts'
import { EVENT_KINDS } from './event.ts'

const receivedBy = (...events: string[]) => EVENT_KINDS.filter(kind => isSubscribed(events, kind))

test('the default endpoint receives the five kinds of the contract and no others', () => {
  const five = ['message.received', 'message.sent', 'message.delivered', 'message.read', 'message.failed']
  expect(receivedBy(...DEFAULT_EVENTS)).toEqual(five)
})

test('a group receives exactly its kinds, and each kind belongs to a group', () => {
  expect(receivedBy('instance.*')).toEqual(EVENT_KINDS.filter(kind => kind.startsWith('instance.')))
  expect(receivedBy('message.failed', 'group.*')).toEqual(
    EVENT_KINDS.filter(kind => kind === 'message.failed' || kind.startsWith('group.')),
  )
  for (const all of [['*'], EVENT_GROUPS]) expect(receivedBy(...all)).toEqual(EVENT_KINDS)
  expect(isSubscribed(['message.*'], 'messages.sent')).toBe(false)
})

test('a filter names kinds and groups that exist', () => {
  expect([...EVENT_KINDS, ...EVENT_GROUPS, '*'].every(isPattern)).toBe(true)
  expect(['message', 'message.', 'messages.*', '*.*', 'instance.connected.*', ''].filter(isPattern)).toEqual([])
})
