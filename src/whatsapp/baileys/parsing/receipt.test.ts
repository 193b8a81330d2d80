import { describe, expect, test } from 'vitest'
import { parseReceipt } from './receipt.ts'

const SELF = { id: '5511900000001:7@s.whatsapp.net', lid: '99000000001:7@lid' }
const CONTACT = '5511987654321@s.whatsapp.net'

const receipt = (attrs: Record<string, string>, more: string[] = []) =>
  parseReceipt(
    {
      tag: 'receipt',
      attrs: { id: 'A', from: CONTACT, ...attrs },
      ...(more.length > 0 && {
        content: [{ tag: 'list', attrs: {}, content: more.map(id => ({ tag: 'item', attrs: { id } })) }],
      }),
    },
    SELF,
  )

describe('a receipt', () => {
  test.each([
    [{}, 'delivered'],
    [{ type: 'inactive' }, 'delivered'],
    [{ type: 'read' }, 'read'],
    [{ type: 'played' }, 'read'],
  ] as const)('with %o reports %s', (attrs, reached) => {
    expect(receipt(attrs)).toEqual({ whatsappIds: ['A'], reached, chat: CONTACT })
  })

  test('names a second address only if WhatsApp gives the number of a LID', () => {
    const lid = '99000000777@lid'
    const group = '120363000000000777@g.us'
    expect(receipt({ from: lid, sender_pn: CONTACT })?.alternate).toBe(CONTACT)
    expect(receipt({ from: lid })?.alternate).toBeUndefined()
    expect(receipt({ from: lid, sender_pn: lid })?.alternate).toBeUndefined()
    expect(receipt({ from: group, participant: lid, participant_pn: CONTACT })?.alternate).toBeUndefined()
  })

  test('names several messages at once', () => {
    expect(receipt({ type: 'read' }, ['B', 'C'])).toEqual({
      whatsappIds: ['A', 'B', 'C'],
      reached: 'read',
      chat: CONTACT,
    })
  })

  test('of many group members counts for the messages that members other than us report', () => {
    const part = (key: string, ...jids: string[]) => ({
      tag: 'participants',
      attrs: { key },
      content: jids.map(jid => ({ tag: 'user', attrs: { jid } })),
    })
    const parts = [part('A', CONTACT), part('B', SELF.lid), part('C', SELF.id, CONTACT), part('')]
    const node = { tag: 'receipt', attrs: { id: 'X', from: '120363000000000777@g.us', type: 'read' } }
    expect(parseReceipt({ ...node, content: parts }, SELF)).toMatchObject({ whatsappIds: ['A', 'C'], reached: 'read' })
    expect(parseReceipt({ ...node, content: [part('B', SELF.id)] }, SELF)).toBeNull()
  })

  test('counts from a LID as from a number, and from any member of a group', () => {
    expect(receipt({ from: '99000000777@lid' })?.reached).toBe('delivered')
    expect(receipt({ from: '120363000000000777@g.us', participant: '99000000777:3@lid' })?.reached).toBe('delivered')
  })

  test.each(['retry', 'server-error', 'peer_msg', 'hist_sync', 'unheard_of', 'constructor', '__proto__'])(
    'of type %s reports no progress',
    type => {
      expect(receipt({ type })).toBeNull()
    },
  )

  test.each([
    { from: '5511900000001:0@s.whatsapp.net', recipient: CONTACT },
    { from: '99000000001@lid', recipient: CONTACT, type: 'read' },
    { from: '120363000000000777@g.us', participant: '5511900000001@s.whatsapp.net' },
  ])('of our own device reports no progress of the recipient: %o', attrs => {
    expect(receipt(attrs)).toBeNull()
  })

  test('in the chat with ourselves counts as the recipient’s', () => {
    expect(receipt({ from: '5511900000001@s.whatsapp.net', type: 'read' })?.reached).toBe('read')
  })

  test('of type sender proves that WhatsApp has the message', () => {
    expect(receipt({ from: '5511900000001:0@s.whatsapp.net', recipient: CONTACT, type: 'sender' })?.reached).toBe(
      'sent',
    )
  })
})
