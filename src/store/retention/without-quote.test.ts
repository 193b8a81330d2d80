import { proto } from 'baileys'
import { expect, test } from 'vitest'
import { encodeContent } from '../../whatsapp/baileys/encode-content.ts'
import { encodeFile, type SentFile } from '../../whatsapp/baileys/media/content.ts'
import { withoutQuote } from './without-quote.ts'

const FILE = {
  url: 'https://mmg.whatsapp.net/file',
  directPath: '/file',
  mediaKey: new Uint8Array(32).fill(200),
  sha256: new Uint8Array(32).fill(1),
  encSha256: new Uint8Array(32).fill(2),
  uploadedAt: 1_700_000_000_000,
  mimetype: 'image/jpeg',
  size: 2 ** 40,
  filename: 'a.jpg',
  picture: null,
} as Omit<SentFile, 'form' | 'caption'>
const FORMS = ['image', 'video', 'audio', 'voice', 'sticker', 'document'] as const
const SELF = { id: '5511900000000:7@s.whatsapp.net', lid: '99988@lid' }

const QUOTED = {
  stanzaId: 'ID',
  participant: '123@lid',
  quotedMessage: { conversation: 'their words '.repeat(30) },
}
const REST = { expiration: 86_400, mentionedJid: ['5511987654321@s.whatsapp.net'] }

test('of a text, only the quotation is removed', () => {
  const quoted = { state: null, chats: [], sentAt: 1, type: 'text', text: 'their words', content: null } as const
  const quote = { messageId: 'msg_0', whatsappId: 'ID', author: '123@lid' }
  const group = { addressing: 'lid', disappearsAfter: 86_400 } as const
  const context = { address: '1203@g.us', self: SELF, group, mentioned: REST.mentionedJid, quoted, now: 1 }
  const content = encodeContent('an answer', { quote }, context)
  const expected = proto.Message.decode(content)
  for (const field of ['stanzaId', 'participant', 'quotedMessage'] as const)
    delete expected.extendedTextMessage!.contextInfo![field]
  expect(proto.Message.decode(withoutQuote(content)).toJSON()).toEqual(expected.toJSON())
})

test.each(FORMS.flatMap(form => ['', 'a caption'].map(caption => ({ form, caption }))))(
  'of a file, only the quotation is removed: $form $caption',
  ({ form, caption }) => {
    const decoded = (contextInfo: proto.IContextInfo, change = (content: Uint8Array) => content) => {
      const { messageContextInfo, ...shown } = proto.Message.decode(
        change(encodeFile({ ...FILE, form, caption }, contextInfo)),
      ).toJSON() as Record<string, unknown>
      expect(messageContextInfo).toHaveProperty('messageSecret')
      return shown
    }
    expect(decoded({ ...QUOTED, ...REST }, withoutQuote)).toEqual(decoded(REST))
  },
)

test('a content without a quote stays the same', () => {
  const content = encodeFile({ ...FILE, form: 'document', caption: 'a caption' }, REST)
  expect(Buffer.from(withoutQuote(content))).toEqual(Buffer.from(content))
})
