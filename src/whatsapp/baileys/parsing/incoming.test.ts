import type { proto, WAMessage } from 'baileys'
import { describe, expect, test } from 'vitest'
import { parseContent, parseIncoming } from './incoming.ts'

const NUMBER = '5511987654321'
const LID = '990000007654321'
const GROUP = '120363000000000777@g.us'
const SELF = { id: '5511900000000:3@s.whatsapp.net', lid: '990000000000000:3@lid' }
const knowsNobody = { getPNForLID: async () => null, getLIDForPN: async () => null }
const storesNobody = { addressesOf: async (jid: string) => [jid] }

const message = (key: Partial<WAMessage['key']>, content: proto.IMessage = { conversation: 'hi' }): WAMessage => ({
  key: { id: 'ID', remoteJid: `${NUMBER}@s.whatsapp.net`, fromMe: false, ...key },
  message: content,
  messageTimestamp: 1_700_000_000,
})

describe('the sender of a message', () => {
  test.each([
    ['the number', { remoteJid: `${NUMBER}@s.whatsapp.net` }],
    ['the number of a device', { remoteJid: `${NUMBER}:12@s.whatsapp.net` }],
    ['a LID with the number beside it', { remoteJid: `${LID}@lid`, remoteJidAlt: `${NUMBER}@s.whatsapp.net` }],
    ['a LID with a device’s number beside it', { remoteJid: `${LID}@lid`, remoteJidAlt: `${NUMBER}:3@s.whatsapp.net` }],
    ['a member of a group', { remoteJid: GROUP, participant: `${NUMBER}@s.whatsapp.net` }],
    ['a LID in a group', { remoteJid: GROUP, participant: `${LID}:2@lid`, participantAlt: `${NUMBER}@s.whatsapp.net` }],
  ])('is known from %s', async (_, key) => {
    const incoming = await parseIncoming(message(key), knowsNobody, SELF, storesNobody)
    expect(incoming).toMatchObject({ from: NUMBER })
    expect(incoming).not.toHaveProperty('addressing')
  })

  test('is found in the stored mapping when WhatsApp gives only a LID', async () => {
    const incoming = await parseIncoming(
      message({ remoteJid: `${LID}@lid` }),
      { ...knowsNobody, getPNForLID: async () => `${NUMBER}:0@s.whatsapp.net` },
      SELF,
      storesNobody,
    )
    expect(incoming).toMatchObject({ from: NUMBER })
  })

  test('is the LID, marked as such, if the number is unknown', async () => {
    const incoming = await parseIncoming(message({ remoteJid: `${LID}:4@lid` }), knowsNobody, SELF, storesNobody)
    expect(incoming).toMatchObject({ from: LID, addressing: 'lid' })
  })
})

describe('the names and the chat of a sender', () => {
  const learned = {
    getPNForLID: async () => `${NUMBER}:0@s.whatsapp.net`,
    getLIDForPN: async () => `${LID}:2@lid`,
  }
  const both = { from: NUMBER, chat: NUMBER, lid: `${LID}@lid` }

  test.each([
    ['number', { remoteJid: `${NUMBER}@s.whatsapp.net` }, learned, both],
    ['LID', { remoteJid: `${LID}@lid` }, learned, both],
    ['LID beside the number', { remoteJid: `${NUMBER}@s.whatsapp.net`, remoteJidAlt: `${LID}@lid` }, knowsNobody, both],
    ['number beside the LID', { remoteJid: `${LID}@lid`, remoteJidAlt: `${NUMBER}@s.whatsapp.net` }, knowsNobody, both],
    ['number alone', { remoteJid: `${NUMBER}@s.whatsapp.net` }, knowsNobody, { ...both, lid: null }],
    ['LID alone', { remoteJid: `${LID}:3@lid` }, knowsNobody, { from: LID, chat: `${LID}@lid`, lid: `${LID}@lid` }],
    ['member', { remoteJid: GROUP, participant: `${LID}@lid` }, learned, { ...both, chat: GROUP }],
  ])('by %s', async (_, key, mapping, expected) => {
    expect(await parseIncoming(message(key), mapping, SELF, storesNobody)).toMatchObject(expected)
  })

  test('a failing mapping removes only the LID', async () => {
    const getLIDForPN = () => Promise.reject(new Error('no answer'))
    const incoming = await parseIncoming(message({}), { ...knowsNobody, getLIDForPN }, SELF, storesNobody)
    expect(incoming).toMatchObject({ from: NUMBER, lid: null })
  })

  test.each(['867051314767696@bot', '867051314767696:1@bot'])(
    'an assistant such as %s has neither number nor LID, and is marked as such',
    async participant => {
      const incoming = await parseIncoming(message({ remoteJid: GROUP, participant }), knowsNobody, SELF, storesNobody)
      expect(incoming).toMatchObject({ from: '867051314767696', addressing: 'other', chat: GROUP, lid: null })
    },
  )

  test('the username has no @ sign', async () => {
    const username = (key: object) =>
      parseIncoming(message(key), knowsNobody, SELF, storesNobody).then(found => found?.username)
    expect(await username({ remoteJidUsername: '@ana' })).toBe('ana')
    expect(await username({ remoteJid: GROUP, participant: `${LID}@lid`, participantUsername: 'ana' })).toBe('ana')
    expect(await username({})).toBeNull()
  })
})

describe('without an event', () => {
  test.each([
    ['ours, in a broadcast list', { remoteJid: '1700000000@broadcast', participant: '990000000000000@lid' }],
    ['a status', { remoteJid: 'status@broadcast', participant: `${NUMBER}@s.whatsapp.net` }],
    ['a newsletter', { remoteJid: '120363000000000001@newsletter' }],
  ])('%s', async (_, key) => {
    expect(await parseIncoming(message(key), knowsNobody, SELF, storesNobody)).toBeNull()
  })

  test.each([
    ['a stub', null],
    ['nothing', {}],
    ['a deletion of nothing', { protocolMessage: { type: 0 } }],
    ['an edit of nothing', { editedMessage: { message: { protocolMessage: { type: 14 } } } }],
    ['a group’s key', { senderKeyDistributionMessage: {}, messageContextInfo: {} }],
    ['a vote', { pollUpdateMessage: { pollCreationMessageKey: { id: 'A' } } }],
    ['the header of an album', { albumMessage: { expectedImageCount: 3 } }],
    ['a status in a group', { groupStatusMessageV2: { message: { conversation: 'hi' } } }],
    ['a mention in a status', { statusMentionMessage: { message: { conversation: 'hi' } } }],
    ['history for a new member', { messageHistoryBundle: { mimetype: 'application/x' } }],
    ['a notice of history', { messageHistoryNotice: {} }],
    ['a request of sticker files', { stickerSyncRmrMessage: { filehash: ['x'] } }],
  ] as [string, proto.IMessage | null][])('%s', async (_, content) => {
    expect(await parseIncoming({ ...message({}), message: content }, knowsNobody, SELF, storesNobody)).toBeNull()
  })
})

describe('a picture or video that belongs to another message', () => {
  const parse = (associationType: number | undefined, isOwn: boolean) => {
    const picture = { message: { imageMessage: { mimetype: 'image/jpeg' } } }
    const messageContextInfo = { messageAssociation: { associationType, parentMessageKey: { id: 'A' } } }
    const content = { associatedChildMessage: picture, messageContextInfo } as proto.IMessage
    const copied = isOwn ? { deviceSentMessage: { message: content } } : content
    return parseIncoming(message({ fromMe: isOwn }, copied), knowsNobody, SELF, storesNobody)
  }

  test.each([5, 10, 12, 19])('causes no event if it is a second copy: %i', async type => {
    expect(await parse(type, false)).toBeNull()
    expect(await parse(type, true)).toBeNull()
  })

  test.each([undefined, 0, 1, 99])('causes an event otherwise, as in an album: %s', async type => {
    expect(await parse(type, false)).toMatchObject({ type: 'image' })
    expect(await parse(type, true)).toMatchObject({ type: 'image', written: true })
  })
})

describe('what the owner writes on another device', () => {
  const direct = { remoteJid: `${LID}@lid`, remoteJidAlt: `${NUMBER}@s.whatsapp.net`, fromMe: true }
  const ours = { from: '5511900000000', written: true }

  test.each([
    ['a chat by LID', direct, { chat: NUMBER, lid: `${LID}@lid` }],
    ['a chat by number', { fromMe: true }, { chat: NUMBER, lid: null }],
    [
      'a chat by LID with our own number beside it',
      { ...direct, remoteJidAlt: '5511900000000@s.whatsapp.net' },
      { chat: `${LID}@lid`, lid: `${LID}@lid` },
    ],
    ['a group', { remoteJid: GROUP, fromMe: true }, { chat: GROUP, group: GROUP, lid: null }],
    [
      'a group that names a LID of ours that we do not know',
      { remoteJid: GROUP, participant: '990000000000009@lid', participantAlt: '5511900000000@s.whatsapp.net' },
      { chat: GROUP, lid: null },
    ],
    ['a chat with ourselves', { remoteJid: '990000000000000@lid', fromMe: true }, { chat: '990000000000000@lid' }],
  ])('%s', async (_, key, expected) => {
    const content = { deviceSentMessage: { message: { conversation: 'hi' } } }
    const found = await parseIncoming(message(key, content), knowsNobody, SELF, storesNobody)
    expect(found).toMatchObject({ ...ours, ...expected, type: 'text', text: 'hi' })
    expect(found).not.toHaveProperty('addressing')
  })

  test('a copy that a contact passes off as ours causes no event', async () => {
    const content = { deviceSentMessage: { message: { conversation: 'hi' } } }
    expect(await parseIncoming(message({}, content), knowsNobody, SELF, storesNobody)).toBeNull()
  })
})

describe('an edit or deletion', () => {
  const inGroup = { remoteJid: GROUP, participant: `${LID}@lid`, participantAlt: `${NUMBER}@s.whatsapp.net` }
  const target = (key: proto.IMessageKey) => ({ id: 'A', ...key })
  const edit = (editedMessage: proto.IMessage) => ({
    protocolMessage: { key: target({ fromMe: true }), type: 14, editedMessage },
  })
  const parse = (key: Partial<WAMessage['key']>, content: proto.IMessage) =>
    parseIncoming(message(key, content), knowsNobody, SELF, storesNobody)

  test.each([
    ['a text', { conversation: 'new' }, { text: 'new' }],
    ['a caption', { imageMessage: { caption: 'new' } }, { text: 'new' }],
    ['a caption that is removed', { imageMessage: {} }, {}],
  ])('changes %s', async (_, content, expected) => {
    const found = await parse({}, { editedMessage: { message: edit(content) } })
    expect(found).toMatchObject({ id: 'ID', from: NUMBER, change: 'edit', target: 'A', ofOwn: false, ...expected })
    if (!('text' in expected)) expect(found).not.toHaveProperty('text')
  })

  test('without content causes no event', async () => {
    expect(await parse({}, edit({}))).toBeNull()
  })

  test.each([
    ['by number', {}, true],
    ['by number, from the phone', { fromMe: true }, true],
    ['with the LID beside it', { remoteJidAlt: `${LID}@lid` }, undefined],
    ['by LID', { remoteJid: `${LID}@lid` }, undefined],
  ])('in a chat given %s says whether the LID was looked up', async (_, key, isLidLookedUp) => {
    const mapping = { getPNForLID: async () => `${NUMBER}@s.whatsapp.net`, getLIDForPN: async () => `${LID}@lid` }
    const content = edit({ conversation: 'new' })
    const found = await parseIncoming(message(key, content), mapping, SELF, storesNobody)
    expect(found).toMatchObject({ change: 'edit', lid: `${LID}@lid` })
    expect((found as { isLidLookedUp?: true }).isLidLookedUp).toBe(isLidLookedUp)
    expect(await parseIncoming(message(key), mapping, SELF, storesNobody)).not.toHaveProperty('isLidLookedUp')
  })

  test.each([
    [`${NUMBER}:2@s.whatsapp.net`, { from: NUMBER, lid: `${LID}@lid` }],
    [`${LID}:2@lid`, { from: NUMBER, lid: `${LID}@lid` }],
    ['777@bot', { from: '777', addressing: 'other', lid: null }],
    ['x@s.whatsapp.net', undefined],
    [`${'5'.repeat(21)}@lid`, undefined],
  ])('of another member’s message, %s, names the author from stored pairs only', async (participant, author) => {
    const addresses = [`${NUMBER}@s.whatsapp.net`, `${LID}@lid`]
    const asked: string[] = []
    const stored = {
      addressesOf: async (jid: string) => {
        asked.push(jid)
        return jid.endsWith('@bot') ? [jid] : jid.endsWith('@lid') ? addresses.toReversed() : addresses
      },
    }
    const neverAsked = { ...knowsNobody, getLIDForPN: () => expect.unreachable(), getPNForLID: async () => null }
    const protocolMessage = { key: target({ participant }), type: 0 }
    const sender = { remoteJid: GROUP, participant: '990000000000001@lid' }
    const found = await parseIncoming(message(sender, { protocolMessage }), neverAsked, SELF, stored)
    expect(found).toMatchObject({ change: 'delete', byAdmin: true })
    expect(found && 'author' in found ? found.author : undefined).toEqual(author)
    expect(asked).toEqual(author ? [participant] : [])
  })

  test.each([
    ['its own message', inGroup, { fromMe: true }, { ofOwn: false }],
    ['its own message, named by number', inGroup, { participant: `${NUMBER}:2@s.whatsapp.net` }, { ofOwn: false }],
    [
      'another member’s',
      inGroup,
      { participant: '990000000000001@lid' },
      { ofOwn: false, byAdmin: true, author: { lid: '990000000000001@lid' } },
    ],
    ['ours', inGroup, { participant: '990000000000000:3@lid' }, { ofOwn: true, byAdmin: true }],
    ['another’s in a chat', {}, { participant: '990000000000001@lid' }, { ofOwn: false }],
    ['ours, on the phone', { fromMe: true }, { fromMe: true }, { ofOwn: true, written: true }],
    [
      'another member’s, on the phone',
      { ...inGroup, fromMe: true },
      { fromMe: false },
      { ofOwn: false, written: true },
    ],
  ])('deletes %s', async (_, sender, key, expected) => {
    const { byAdmin } = expected as { byAdmin?: true }
    for (const type of [0, undefined]) {
      const protocolMessage = { key: target(key), ...(type !== undefined && { type }) }
      const found = await parse(sender, { protocolMessage })
      expect(found).toMatchObject({ change: 'delete', target: 'A', ...expected })
      expect(found && 'byAdmin' in found).toBe(byAdmin === true)
    }
  })
})

describe('the type and text', () => {
  test.each([
    [{ conversation: 'hi' }, { type: 'text', text: 'hi' }],
    [{ extendedTextMessage: { text: 'hi' } }, { type: 'text', text: 'hi' }],
    [
      { conversation: 'hi', senderKeyDistributionMessage: {} },
      { type: 'text', text: 'hi' },
    ],
    [{ ephemeralMessage: { message: { conversation: 'gone soon' } } }, { type: 'text', text: 'gone soon' }],
    [{ viewOnceMessageV2: { message: { imageMessage: { caption: 'once' } } } }, { type: 'image', text: 'once' }],
    [
      { documentWithCaptionMessage: { message: { documentMessage: { caption: 'bill' } } } },
      { type: 'document', text: 'bill' },
    ],
    [{ imageMessage: {} }, { type: 'image' }],
    [{ videoMessage: { caption: 'look' } }, { type: 'video', text: 'look' }],
    [{ ptvMessage: {} }, { type: 'video' }],
    [{ audioMessage: {} }, { type: 'audio' }],
    [{ stickerMessage: {} }, { type: 'sticker' }],
    [{ locationMessage: {} }, { type: 'location' }],
    [{ contactMessage: { displayName: 'Ana' } }, { type: 'contact' }],
    [{ contactsArrayMessage: {} }, { type: 'contact' }],
    [{ reactionMessage: { text: '👍' } }, { type: 'reaction', text: '👍' }],
    [{ reactionMessage: { text: '' } }, { type: 'reaction' }],
    [{ pollCreationMessageV3: { name: 'Lunch?' } }, { type: 'poll' }],
    [{ buttonsResponseMessage: {} }, { type: 'other' }],
  ] as [proto.IMessage, object][])('%o', (content, expected) => {
    expect(parseContent(content)).toEqual(expected)
  })
})

test('a message has WhatsApp’s ID and time, the group and the push name', async () => {
  const inGroup = { ...message({ remoteJid: GROUP, participant: `${NUMBER}@s.whatsapp.net` }), pushName: 'Ana' }
  expect(await parseIncoming(inGroup, knowsNobody, SELF, storesNobody)).toEqual({
    id: 'ID',
    from: NUMBER,
    chat: GROUP,
    lid: null,
    username: null,
    type: 'text',
    text: 'hi',
    group: GROUP,
    name: 'Ana',
    sentAt: 1_700_000_000_000,
  })
})

test('a sender cannot make the event large with addresses or its push name', async () => {
  const digits = '9'.repeat(100_000)
  const contextInfo = {
    stanzaId: 'A',
    participant: `${digits}@s.whatsapp.net`,
    quotedMessage: { conversation: 'hi' },
    mentionedJid: [`${digits}@lid`, `${digits}@s.whatsapp.net`, 'x@lid', `${LID}:3@lid`],
  }
  const sent = message({}, { extendedTextMessage: { text: 'hi', contextInfo } })
  const incoming = await parseIncoming({ ...sent, pushName: digits }, knowsNobody, SELF, storesNobody)
  expect(incoming).toMatchObject({ details: { quote: { from: null }, mentions: [`${LID}@lid`] } })
  expect(JSON.stringify(incoming).length).toBeLessThan(2_000)
})

test.each([null, 0, -5, Number.NaN, 253_402_300_800, 1e20, 0.5])(
  'a message that WhatsApp dates %j has the time of its arrival',
  async messageTimestamp => {
    const before = Date.now()
    const incoming = await parseIncoming({ ...message({}), messageTimestamp }, knowsNobody, SELF, storesNobody)
    expect(incoming?.sentAt).toBeGreaterThanOrEqual(before)
    expect(incoming?.sentAt).toBeLessThanOrEqual(Date.now())
  },
)

test('the latest timestamp that an event can hold is kept', async () => {
  const incoming = await parseIncoming(
    { ...message({}), messageTimestamp: 253_402_300_799 },
    knowsNobody,
    SELF,
    storesNobody,
  )
  expect(new Date(incoming!.sentAt).toISOString()).toBe('9999-12-31T23:59:59.000Z')
})
