import { describe, expect, test } from 'vitest'
import { type IncomingMessage, incomingKeys } from '../incoming-message.ts'
import { messageFailure } from '../message.ts'
import { failureBody, incomingBody, MAX_EVENT_TEXT_UNITS, progressBody } from './event.ts'

const SUBJECT = { instanceId: 'inst_1', messageId: 'msg_1', to: '5511987654321' }
const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const LID = '990000007654321@lid'

function incoming(changes: Partial<IncomingMessage> = {}): IncomingMessage {
  return {
    id: 'A1',
    from: '5511988887777',
    type: 'text',
    chat: '5511988887777',
    lid: null,
    username: null,
    sentAt: AT,
    ...changes,
  }
}

describe('the body of an event', () => {
  test('contains exactly event, instanceId, timestamp and data', () => {
    expect(JSON.parse(progressBody(SUBJECT, 'delivered', AT))).toEqual({
      event: 'message.delivered',
      instanceId: 'inst_1',
      timestamp: '2026-01-02T03:04:05.006Z',
      data: { id: 'msg_1', to: '5511987654321', status: 'delivered' },
    })
  })

  test('of a failure contains its code and message too', () => {
    expect(JSON.parse(failureBody(SUBJECT, messageFailure('expired'), AT)).data).toEqual({
      id: 'msg_1',
      to: '5511987654321',
      status: 'failed',
      error: messageFailure('expired'),
    })
  })

  test('of an incoming message contains at most 100 characters of an ID, which its sender chooses', () => {
    const body = incomingBody('inst_1', 'msg_1', incoming({ id: 'A'.repeat(1_000) }))
    expect(JSON.parse(body).data.id).toBe('A'.repeat(100))
  })

  test('of an incoming message contains the known fields, and WhatsApp’s time as the timestamp', () => {
    const message = incoming({ text: 'oi', group: '1@g.us', chat: '1@g.us', name: 'Ana', lid: LID, username: 'ana' })
    expect(JSON.parse(incomingBody('inst_1', 'msg_1', message))).toEqual({
      event: 'message.received',
      instanceId: 'inst_1',
      timestamp: '2026-01-02T03:04:05.006Z',
      data: {
        id: 'A1',
        from: '5511988887777',
        type: 'text',
        text: 'oi',
        group: '1@g.us',
        name: 'Ana',
        messageId: 'msg_1',
        chat: '1@g.us',
        phone: '5511988887777',
        lid: LID,
        username: 'ana',
      },
    })
    const hidden = incoming({ from: '990000007654321', addressing: 'lid', type: 'image', chat: LID, lid: LID })
    expect(JSON.parse(incomingBody('inst_1', 'msg_1', hidden)).data).toEqual({
      id: 'A1',
      from: '990000007654321',
      addressing: 'lid',
      type: 'image',
      messageId: 'msg_1',
      chat: LID,
      phone: null,
      lid: LID,
      username: null,
    })
  })
})

describe('the text of an event', () => {
  const most = 'x'.repeat(MAX_EVENT_TEXT_UNITS - 1)

  test.each([
    ['of the maximum length', `${most}y`, `${most}y`, undefined],
    ['one unit longer', `${most}yz`, `${most}y`, true],
    ['with a character at the cut', `${most}👍`, most, true],
    ['with a character before the cut', `${most.slice(1)}👍z`, `${most.slice(1)}👍`, true],
    ['with a lone surrogate at the cut', `${most}\ud83d!`, `${most}\ud83d`, true],
    ['empty', '', '', undefined],
  ])('%s', (_, text, shown, truncated) => {
    const { data } = JSON.parse(incomingBody('inst_1', 'msg_1', incoming({ text })))
    expect(data.text === shown).toBe(true)
    expect(data.truncated).toBe(truncated)
  })
})

describe('the keys of an incoming message', () => {
  test('differ if the chat, the sender or WhatsApp’s ID differs', () => {
    const messages = [{}, { group: '1@g.us' }, { from: '6' }, { id: 'A2' }].map(incoming)
    expect(new Set(messages.flatMap(incomingKeys)).size).toBe(4)
    expect(incomingKeys(incoming({ sentAt: 0 }))).toEqual(incomingKeys(incoming()))
  })

  test('include one for each address of the sender, the stored form first', () => {
    const hidden = incoming({ from: '990000007654321', addressing: 'lid', lid: LID })
    const known = incoming({ lid: LID })
    expect(incomingKeys(hidden)).toEqual(['received:990000007654321:990000007654321:A1'])
    expect(incomingKeys(known)).toEqual(['received:5511988887777:5511988887777:A1', ...incomingKeys(hidden)])
    expect(incomingKeys({ ...known, group: '1@g.us' })).toEqual([
      'received:1@g.us:5511988887777:A1',
      'received:1@g.us:990000007654321:A1',
    ])
  })
})
