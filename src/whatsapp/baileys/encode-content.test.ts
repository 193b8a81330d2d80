import { proto } from 'baileys'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type ChatContext, decodeContent, decodeSent, encodeContent } from './encode-content.ts'

const CONTEXT: ChatContext = {
  address: '5511987654321@s.whatsapp.net',
  self: { id: '5511900000000:7@s.whatsapp.net', lid: '99988@lid' },
  group: null,
  mentioned: [],
  quoted: null,
  now: 1,
}
const QUOTE = { messageId: 'msg_0', whatsappId: 'A', author: null }

test('stored content encodes to the same bytes at each attempt', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), text => {
      const content = encodeContent(text, {}, CONTEXT)
      expect(Buffer.from(proto.Message.encode(decodeContent(content)).finish())).toEqual(Buffer.from(content))
      expect(decodeContent(content).extendedTextMessage?.text).toBe(text)
    }),
  )
})

test('each message has its own secret', () => {
  const secretOf = () => decodeContent(encodeContent('x', {}, CONTEXT)).messageContextInfo?.messageSecret
  expect(secretOf()).not.toEqual(secretOf())
})

test.each([
  ['a text', { extendedTextMessage: { text: 'old' } }, { conversation: 'new' }],
  ['a caption', { imageMessage: { caption: 'old', width: 7 } }, { imageMessage: { caption: 'new', width: 7 } }],
])('a quotation of %s shows it as it was last edited', (_, sent, shown) => {
  const content = proto.Message.encode(sent).finish()
  const quoted = { state: 'sent', chats: [], sentAt: 1, type: 'text', text: 'new', content } as const
  const encoded = encodeContent('x', { quote: QUOTE }, { ...CONTEXT, quoted })
  const { contextInfo } = decodeContent(encoded).extendedTextMessage!
  expect(contextInfo?.quotedMessage).toMatchObject(shown)
})

test.each([
  ['an image', { imageMessage: { caption: 'new' } }],
  ['a voice message', { audioMessage: { ptt: true } }],
])('a quotation of %s does not contain what that message quotes', (_, shown) => {
  const [[field, part]] = Object.entries(shown) as [[string, object]]
  const contextInfo = { stanzaId: 'B', participant: '1@lid', quotedMessage: { conversation: 'their words' } }
  const content = proto.Message.encode({ [field]: { ...part, contextInfo } }).finish()
  const quoted = { state: 'sent', chats: [], sentAt: 1, type: 'text', text: 'new', content } as const
  const encoded = decodeContent(encodeContent('x', { quote: QUOTE }, { ...CONTEXT, quoted }))
  expect(encoded.extendedTextMessage?.contextInfo?.quotedMessage).toMatchObject(shown)
  expect(JSON.stringify(encoded)).not.toContain('their words')
})

test.each([
  ['a person', CONTEXT.address, null, '5511900000000@s.whatsapp.net'],
  ['a person whom WhatsApp names by LID', '77766@lid', null, '99988@lid'],
  ['a group by number', '1203@g.us', 'number', '5511900000000@s.whatsapp.net'],
  ['a group by LID', '1203@g.us', 'lid', '99988@lid'],
] as const)('a quotation of an own message names us as the chat does: %s', (_, address, addressing, participant) => {
  const group = addressing && { addressing, disappearsAfter: 0 }
  const quoted = { state: 'sent', chats: [], sentAt: 1, type: 'text', text: 'new', content: null } as const
  const encoded = encodeContent('x', { quote: QUOTE }, { ...CONTEXT, address, group, quoted })
  expect(decodeContent(encoded).extendedTextMessage?.contextInfo?.participant).toBe(participant)
})

test.each([
  [
    'a text',
    { extendedTextMessage: { text: 'old', title: 't' } },
    { extendedTextMessage: { text: 'new', title: 't' } },
  ],
  ['a caption', { imageMessage: { caption: 'old' } }, { imageMessage: { caption: 'new' } }],
  [
    'the caption of a document',
    { documentWithCaptionMessage: { message: { documentMessage: { caption: 'old' } } } },
    { documentWithCaptionMessage: { message: { documentMessage: { caption: 'new' } } } },
  ],
])('%s that is sent again is as it was last edited', (_, sent, again) => {
  const content = proto.Message.encode(sent).finish()
  expect(decodeSent({ address: CONTEXT.address, content, editedText: 'new' })).toMatchObject(again)
  expect(decodeSent({ address: CONTEXT.address, content })).toMatchObject(sent)
})
