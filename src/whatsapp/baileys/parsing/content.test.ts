import type { proto } from 'baileys'
import { describe, expect, test } from 'vitest'
import { parseContent, parseIncoming } from './incoming.ts'

const SELF = { id: '5511900000000:3@s.whatsapp.net', lid: '990000000000000:3@lid' }
const knowsNobody = { getPNForLID: async () => null, getLIDForPN: async () => null }
const storesNobody = { addressesOf: async (jid: string) => [jid] }

const parse = (message: proto.IMessage) =>
  parseIncoming(
    {
      key: { id: 'ID', remoteJid: '5511987654321@s.whatsapp.net', fromMe: false },
      message,
      messageTimestamp: 1_700_000_000,
    },
    knowsNobody,
    SELF,
    storesNobody,
  )

const hydratedTemplate = { hydratedContentText: 'Your code is 123' }

describe('the text of a message', () => {
  test.each([
    ['a pressed button', { buttonsResponseMessage: { selectedDisplayText: 'Yes' } }, 'Yes'],
    ['a chosen row', { listResponseMessage: { title: 'Tuesday' } }, 'Tuesday'],
    ['a pressed button of a template', { templateButtonReplyMessage: { selectedDisplayText: 'Stop' } }, 'Stop'],
    ['an answered form', { interactiveResponseMessage: { body: { text: 'Sent' } } }, 'Sent'],
    ['a template', { templateMessage: { hydratedTemplate } }, 'Your code is 123'],
    ['an older template', { templateMessage: { hydratedFourRowTemplate: hydratedTemplate } }, 'Your code is 123'],
    [
      'an interactive template',
      { templateMessage: { interactiveMessageTemplate: { body: { text: 'Pick one' } } } },
      'Pick one',
    ],
    ['a structured message', { highlyStructuredMessage: { hydratedHsm: { hydratedTemplate } } }, 'Your code is 123'],
    ['buttons', { buttonsMessage: { contentText: 'Coming?' } }, 'Coming?'],
    ['a list', { listMessage: { title: 'Days', description: 'Which day?' } }, 'Which day?'],
    ['a list with a title only', { listMessage: { title: 'Days' } }, 'Days'],
    ['an interactive message', { interactiveMessage: { body: { text: 'Pick one' } } }, 'Pick one'],
    [
      'an answer of an assistant',
      { richResponseMessage: { submessages: [{ messageText: 'One' }, {}, { messageText: 'Two' }] } },
      'One\nTwo',
    ],
    ['a mention of the group', { groupMentionedMessage: { message: { conversation: '@all' } } }, '@all'],
    ['a question to an assistant', { botInvokeMessage: { message: { conversation: 'why?' } } }, 'why?'],
    ['a comment', { commentMessage: { message: { conversation: 'nice' } } }, 'nice'],
    [
      'wrappers in wrappers',
      { ephemeralMessage: { message: { groupMentionedMessage: { message: { conversation: 'hi' } } } } },
      'hi',
    ],
  ] as [string, proto.IMessage, string][])('is that of %s', async (_, content, text) => {
    expect(parseContent(content)).toEqual({ type: 'text', text })
    const edit = { protocolMessage: { key: { id: 'A' }, type: 14, editedMessage: content } }
    expect(await parse({ editedMessage: { message: edit } })).toMatchObject({ change: 'edit', text })
    const contextInfo = { stanzaId: 'A', quotedMessage: content }
    const quoting = await parse({ extendedTextMessage: { text: 'this?', contextInfo } })
    expect(quoting).toMatchObject({ details: { quote: { text } } })
  })

  test.each([
    ['an event', { eventMessage: { name: 'Dinner' } }, 'Dinner'],
    ['an order', { orderMessage: { message: 'Two, please', orderTitle: 'Cart' } }, 'Two, please'],
    ['a product', { productMessage: { product: { title: 'Cup' } } }, 'Cup'],
    ['an invitation', { groupInviteMessage: { caption: 'Join us' } }, 'Join us'],
    ['a payment', { requestPaymentMessage: { noteMessage: { extendedTextMessage: { text: 'lunch' } } } }, 'lunch'],
  ] as [string, proto.IMessage, string][])('is the name or caption of %s', (_, content, text) => {
    expect(parseContent(content)).toEqual({ type: 'other', text })
  })

  test.each([
    { buttonsMessage: { contentText: 'Coming?', imageMessage: { mimetype: 'image/png' } } },
    { templateMessage: { hydratedTemplate: { hydratedContentText: 'Coming?', imageMessage: {} } } },
    { interactiveMessage: { header: { imageMessage: {} }, body: { text: 'Coming?' } } },
  ] as proto.IMessage[])('with buttons below a picture is its caption: %o', async content => {
    expect(await parse(content)).toMatchObject({ type: 'image', text: 'Coming?', file: { source: null } })
  })
})

test('wrappers without a known message are reported, however deep', () => {
  expect(parseContent({ ephemeralMessage: { message: {} } })).toEqual({ type: 'other' })
  expect(parseContent({ botInvokeMessage: {} })).toEqual({ type: 'other' })
  let deep: proto.IMessage = { conversation: 'hi' }
  for (let depth = 0; depth < 10_000; depth++) deep = { ephemeralMessage: { message: deep } }
  expect(parseContent(deep)).toEqual({ type: 'other' })
})

test('the quote in a message with buttons is reported', async () => {
  const contextInfo = { stanzaId: 'A', quotedMessage: { conversation: 'Coming?' } }
  const answer = { buttonsResponseMessage: { selectedDisplayText: 'Yes', contextInfo } }
  expect(await parse(answer)).toMatchObject({ details: { quote: { whatsappId: 'A', text: 'Coming?' } } })
})
