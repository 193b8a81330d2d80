import { expect, test } from 'vitest'
import { parseIncoming } from './incoming.ts'
import { findReferencedAuthor } from './referenced-author.ts'

const ANA = ['5511988880000', '990000000000001@lid']
const BEA = ['5511988880001', '990000000000002@lid']
const self = { id: '5511900000000:3@s.whatsapp.net', lid: '990000000000000:3@lid' }
const stored = { addressesOf: async (jid: string) => [jid, `${BEA[0]}@s.whatsapp.net`] }

const inChat = { group: false, isOwn: false }
const fromPhone = { group: false, isOwn: true }
const inGroup = { group: true, isOwn: false }
const ofBea = [BEA[1], BEA[0]]

test.each([
  ['ours, in a chat', inChat, {}, 'own', undefined],
  ["the contact's, in a chat", inChat, { fromMe: true }, ANA, undefined],
  ['ours, from the phone', fromPhone, { fromMe: true }, 'own', undefined],
  ["the contact's, from the phone", fromPhone, {}, ANA, undefined],
  ["the contact's, named in a chat", inChat, { fromMe: true, participant: ANA[1]! }, ANA, ANA],
  ['ours, named in a chat', inChat, { participant: '5511900000000@s.whatsapp.net' }, 'own', 'own'],
  ["the sender's, in a group", inGroup, { fromMe: true }, ANA, undefined],
  ['ours, in a group', inGroup, { participant: '990000000000000:1@lid' }, 'own', 'own'],
  ["another member's, in a group", inGroup, { participant: BEA[1]! }, ofBea, ofBea],
  ["nobody's, in a group", inGroup, {}, undefined, undefined],
  ['any text, in a group', inGroup, { participant: 'x@lid' }, undefined, undefined],
])('the message is %s', async (_, where, key, reacted, quoted) => {
  const find = (content: object) => findReferencedAuthor(content, { ...where, self, names: ANA }, stored)
  expect(await find({ reactionMessage: { key: { id: 'A', ...key } } })).toEqual(reacted)
  const { participant } = key as { participant?: string }
  expect(await find({ extendedTextMessage: { text: 'hi', contextInfo: { stanzaId: 'A', participant } } })).toEqual(
    quoted,
  )
})

test('only a message that quotes or reacts names such an author', async () => {
  const key = { remoteJid: `${ANA[0]}@s.whatsapp.net`, remoteJidAlt: ANA[1]!, id: 'ID', fromMe: false }
  const unused = { getPNForLID: async () => null, getLIDForPN: async () => null }
  const parse = (message: object) => parseIncoming({ key, message }, unused, self, stored)
  expect(await parse({ reactionMessage: { key: { id: 'A', fromMe: true } } })).toMatchObject({ referencedAuthor: ANA })
  expect(await parse({ conversation: 'hi' })).not.toHaveProperty('referencedAuthor')
})
