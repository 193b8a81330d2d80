import { EventEmitter } from 'node:events'
import type { BinaryNode } from 'baileys'
import { expect, test } from 'vitest'
import { requestReUpload } from './re-upload.ts'

const KEY = { id: 'A', remoteJid: '120363000000000001@g.us', participant: '5511987654321@s.whatsapp.net' }
const NEVER = new AbortController().signal

function request(answerWithinMs: number) {
  const ws = new EventEmitter()
  const socket = {
    ws,
    sendNode: async () => undefined,
    authState: { creds: { me: { id: '5511900000000:1@s.whatsapp.net' } } },
  }
  const source = {
    form: 'image' as const,
    mediaKey: new Uint8Array(32),
    directPath: '/v/a',
    encSha256: new Uint8Array(32),
    sha256: new Uint8Array(32),
    key: KEY,
  }
  const answer = requestReUpload(socket as never, source, NEVER, answerWithinMs)
  return { answer, receive: (node: BinaryNode) => ws.emit('CB:notification,type:mediaretry', node) }
}

function answerTo({ jid, participant }: { jid: string; participant?: string }, content: BinaryNode): BinaryNode {
  const rmr = { tag: 'rmr', attrs: { jid, from_me: 'false', ...(participant && { participant }) } }
  return { tag: 'notification', attrs: { id: 'A', type: 'mediaretry' }, content: [rmr, content] }
}

const REFUSED = { tag: 'error', attrs: { code: '2' } }
const FORGED = {
  tag: 'encrypt',
  attrs: {},
  content: [
    { tag: 'enc_p', attrs: {}, content: new Uint8Array(40) },
    { tag: 'enc_iv', attrs: {}, content: new Uint8Array(12) },
  ],
}

test('a refusal of exactly this message is the answer', async () => {
  const { answer, receive } = request(60_000)
  receive(answerTo({ jid: KEY.remoteJid, participant: KEY.participant }, REFUSED))
  expect(await answer).toEqual({ kind: 'refused' })
})

test.each([
  ['a refusal of another chat', answerTo({ jid: '5511911111111@s.whatsapp.net' }, REFUSED)],
  [
    'a refusal of another sender',
    answerTo({ jid: KEY.remoteJid, participant: '5511911111111@s.whatsapp.net' }, REFUSED),
  ],
  [
    'an answer that the media key does not decrypt',
    answerTo({ jid: KEY.remoteJid, participant: KEY.participant }, FORGED),
  ],
  ['an answer without content', { tag: 'notification', attrs: { id: 'A' } }],
])('%s with the same ID is not taken for the answer', async (_name, node) => {
  const { answer, receive } = request(50)
  receive(node)
  expect(await answer).toEqual({ kind: 'unanswered' })
})
