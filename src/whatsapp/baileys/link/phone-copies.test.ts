import { type CacheStore, proto, type WAMessage } from 'baileys'
import { expect, test } from 'vitest'
import { copiesIn } from './phone-copies.ts'

const GROUP = '120363000000000777@g.us'
const AUTHOR = '994488012345678@lid'

test('the author of a group message may stand beside the key of the copy from the phone', async () => {
  const copy = {
    key: { remoteJid: GROUP, id: 'A', fromMe: false },
    participant: AUTHOR,
    message: { conversation: 'x' },
  }
  const webMessageInfoBytes = proto.WebMessageInfo.encode(copy).finish()
  const peerDataOperationRequestResponseMessage = {
    peerDataOperationResult: [{ placeholderMessageResendResponse: { webMessageInfoBytes } }],
  }
  const answer = { key: { fromMe: true }, message: { protocolMessage: { peerDataOperationRequestResponseMessage } } }
  const cache = { get: async () => undefined } as unknown as CacheStore
  expect(await copiesIn(answer as WAMessage, cache)).toMatchObject([{ key: { remoteJid: GROUP, participant: AUTHOR } }])
})
