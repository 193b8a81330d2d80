import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { Talking } from './harness.ts'

const FROM = '5511987653001'

/** @param associationType how it belongs to an earlier message */
const secondCopy = (associationType: string, field: 'imageMessage' | 'videoMessage') => ({
  associatedChildMessage: { message: { [field]: { mimetype: 'image/png' } } },
  messageContextInfo: { messageAssociation: { associationType, parentMessageKey: { id: 'EARLIER' } } },
})

describe.each(ONE_STORE)('what contacts send, on %s', store => {
  let talking: Talking
  beforeAll(async () => {
    talking = await Talking.open(store)
  })
  afterAll(async () => talking?.[Symbol.asyncDispose]())

  /** A contact sends a message in WhatsApp's encoding. @returns its event's data */
  async function receive(content: object, more: object = {}) {
    const { id } = await talking.harness.network.writeAs({ from: FROM, to: talking.number.phone, content, ...more })
    const { data } = await talking.event('message.received', found => found.id === id)
    const stored = await talking.call('GET', `/messages/${data['messageId']}`)
    return { data, stored: stored.body.data }
  }

  test('a quote names the message, whoever wrote it', async () => {
    const own = await talking.send({ to: FROM, text: 'pergunta' })
    await talking.becomes(own, 'read')
    const [shown] = await talking.inbox(FROM)
    const answer = await talking.harness.network.writeAs({
      from: FROM,
      to: talking.number.phone,
      text: 'resposta',
      quote: shown!.id,
    })
    const { data } = await talking.event('message.received', found => found.id === answer.id)
    expect(data).toMatchObject({ type: 'text', text: 'resposta' })
    expect(data['quote']).toMatchObject({ messageId: own, whatsappId: shown!.id, text: 'pergunta' })
    expect((await talking.call('GET', `/messages/${data['messageId']}`)).body.data.quote).toEqual(data['quote'])
    const unknown = await receive({
      extendedTextMessage: {
        text: 'e isto?',
        contextInfo: {
          stanzaId: 'ABSENT',
          participant: `${FROM}@s.whatsapp.net`,
          quotedMessage: { conversation: 'antiga' },
        },
      },
    })
    expect(unknown.data['quote']).toEqual({ messageId: null, whatsappId: 'ABSENT', from: FROM, text: 'antiga' })
  })

  test('a reaction names its message, and its removal too', async () => {
    const { messageId, id } = await talking.receive(FROM, 'oi')
    const key = { remoteJid: `${talking.number.phone}@s.whatsapp.net`, fromMe: true, id }
    const set = await receive({ reactionMessage: { key, text: '👍' } })
    expect(set.data).toMatchObject({
      type: 'reaction',
      text: '👍',
      reaction: { messageId, whatsappId: id, emoji: '👍' },
    })
    const removed = await receive({ reactionMessage: { key, text: '' } })
    expect(removed.data['reaction']).toEqual({ messageId, whatsappId: id, emoji: null })
  })

  test.each([
    [
      'mentions',
      {
        extendedTextMessage: {
          text: '@5511900000009 @1 veja',
          contextInfo: { mentionedJid: ['5511900000009@s.whatsapp.net', '990000000000001@lid', 'x'] },
        },
      },
      { mentions: ['5511900000009', '990000000000001@lid'] },
    ],
    [
      'location',
      { locationMessage: { degreesLatitude: -23.5, degreesLongitude: -46.625, name: 'Praça', address: 'Rua 1' } },
      { type: 'location', location: { latitude: -23.5, longitude: -46.625, name: 'Praça', address: 'Rua 1' } },
    ],
    [
      'contacts',
      { contactMessage: { displayName: 'Bia', vcard: 'BEGIN:VCARD\nEND:VCARD' } },
      { type: 'contact', contacts: [{ name: 'Bia', vcard: 'BEGIN:VCARD\nEND:VCARD' }] },
    ],
    [
      'poll',
      { pollCreationMessageV3: { name: 'Quando?', options: [{ optionName: 'hoje' }, { optionName: 'amanhã' }] } },
      { type: 'poll', poll: { question: 'Quando?', options: ['hoje', 'amanhã'], selectable: null } },
    ],
    [
      'referral',
      {
        extendedTextMessage: {
          text: 'vi o anúncio',
          contextInfo: {
            externalAdReply: { sourceId: '120', ctwaClid: 'click', title: 'Oferta', sourceUrl: 'https://fb.me/x' },
          },
        },
      },
      { referral: { sourceId: '120', clickId: 'click', headline: 'Oferta', url: 'https://fb.me/x' } },
    ],
  ])('%s are in the event and in the stored message', async (_, content, expected) => {
    const { data, stored } = await receive(content)
    expect(data).toMatchObject(expected)
    expect(stored).toMatchObject(expected)
  })

  test.each([
    ['a pressed button', { buttonsResponseMessage: { selectedDisplayText: 'Sim' } }, { type: 'text', text: 'Sim' }],
    ['a chosen row', { listResponseMessage: { title: 'Terça' } }, { type: 'text', text: 'Terça' }],
    [
      'a template',
      { templateMessage: { hydratedTemplate: { hydratedContentText: 'O código é 123' } } },
      { type: 'text', text: 'O código é 123' },
    ],
    [
      'buttons below a picture',
      { interactiveMessage: { header: { imageMessage: { mimetype: 'image/png' } }, body: { text: 'Vem?' } } },
      { type: 'image', text: 'Vem?', media: { mimetype: 'image/png' } },
    ],
    [
      'a mention of the group',
      { groupMentionedMessage: { message: { conversation: '@todos' } } },
      { type: 'text', text: '@todos' },
    ],
    ['an event', { eventMessage: { name: 'Jantar' } }, { type: 'other', text: 'Jantar' }],
  ])('the text of %s is in the event and in the stored message', async (_, content, expected) => {
    const { data, stored } = await receive(content)
    expect(data).toMatchObject(expected)
    expect(stored).toMatchObject(expected)
  })

  test.each(['pollCreationMessage', 'pollCreationMessageV5', 'pollCreationMessageV4'])('%s is a poll', async field => {
    const poll = { name: 'Onde?', options: [{ optionName: 'aqui' }], selectableOptionsCount: 1 }
    const content = field.endsWith('V4') ? { message: { pollCreationMessageV3: poll } } : poll
    const { data, stored } = await receive({ [field]: content })
    const expected = { type: 'poll', poll: { question: 'Onde?', options: ['aqui'], selectable: 1 } }
    expect(data).toMatchObject(expected)
    expect(stored).toMatchObject(expected)
  })

  test('a view-once picture whose content arrives is marked', async () => {
    const { data, stored } = await receive({ viewOnceMessageV2: { message: { imageMessage: { caption: 'só uma' } } } })
    expect(data).toMatchObject({ type: 'image', text: 'só uma', viewOnce: true })
    expect(stored).toMatchObject({ viewOnce: true })
  })

  test('an encrypted edit changes nothing, and the log names its message', async () => {
    const { messageId, id } = await talking.receive(FROM, 'antes')
    const secretEncryptedMessage = {
      targetMessageKey: { id, fromMe: true },
      encPayload: 'AAAA',
      encIv: 'AAAA',
      secretEncType: 'MESSAGE_EDIT',
    }
    const content = { secretEncryptedMessage }
    await talking.harness.network.writeAs({ from: FROM, to: talking.number.phone, content })
    await talking.receive(FROM, 'depois')
    expect((await talking.call('GET', `/messages/${messageId}`)).body.data).toMatchObject({
      text: 'antes',
      editedAt: null,
    })
    const lines = talking.harness.service.logLines.filter(line => line.msg === 'message.edit_unreadable')
    expect(lines).toMatchObject([{ whatsappId: id }])
  })

  test.each([
    ['the header of an album', { albumMessage: { expectedImageCount: 2 } }],
    ['the second copy of a picture', secondCopy('HD_IMAGE_DUAL_UPLOAD', 'imageMessage')],
    ['the second copy of a video', secondCopy('HD_VIDEO_DUAL_UPLOAD', 'videoMessage')],
    ['the video of a motion photo', secondCopy('MOTION_PHOTO', 'videoMessage')],
    ['a status in a group', { groupStatusMessageV2: { message: { conversation: 'na praia' } } }],
    ['a mention in a status', { statusMentionMessage: { message: { conversation: 'na praia' } } }],
    ['history', { messageHistoryNotice: {} }],
    ['a vote', { pollUpdateMessage: { pollCreationMessageKey: { id: 'EARLIER' }, vote: {} } }],
  ])('%s causes no event, and the next message does', async (_, content) => {
    const { writeAs } = talking.harness.network
    const { id } = await writeAs({ from: FROM, to: talking.number.phone, content })
    await receive({ conversation: 'depois' })
    expect(talking.events().filter(({ data }) => data['id'] === id)).toEqual([])
  })

  test('each picture of an album is an event', async () => {
    const { data } = await receive(secondCopy('MEDIA_ALBUM', 'imageMessage'))
    expect(data).toMatchObject({ type: 'image', media: { mimetype: 'image/png' } })
  })

  test('long and strange parts neither break the event nor make it large', async () => {
    const { data } = await receive({
      extendedTextMessage: {
        text: 'x',
        contextInfo: {
          stanzaId: 'S'.repeat(10_000),
          quotedMessage: { conversation: '🙂'.repeat(10_000) },
          mentionedJid: Array.from({ length: 3_000 }, (_, n) => `${5_511_900_000_000 + n}@s.whatsapp.net`),
        },
      },
    })
    const quote = data['quote'] as { whatsappId: string; text: string }
    expect([quote.whatsappId.length, quote.text.length, (data['mentions'] as string[]).length]).toEqual([
      100, 1_000, 1_024,
    ])
  })
})
