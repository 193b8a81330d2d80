import {
  type BinaryNode,
  decodeMediaRetryNode,
  decryptMediaRetryData,
  encryptMediaRetryRequest,
  proto,
  type WASocket,
} from 'baileys'
import type { FileSource } from '../../../domain/media.ts'

const { SUCCESS, GENERAL_ERROR } = proto.MediaRetryNotification.ResultType
/** The phone may be off. It answers when it is on again, so a later request may be answered at once. */
const ANSWER_WITHIN_MS = 60_000

/** `refused`: the phone does not have the file. `unanswered`: the next request may succeed. */
export type ReUpload = { kind: 'uploaded'; directPath: string } | { kind: 'refused' } | { kind: 'unanswered' }

/**
 * Asks the linked phone to upload the file of a message again. Baileys' own call waits for an answer for as long as the
 * socket lives. An answer counts only if the media key decrypts it, or if it refuses exactly this message. Senders
 * choose the IDs of their messages, so another message may have the same ID.
 */
export async function requestReUpload(
  { ws, sendNode, authState }: Pick<WASocket, 'ws' | 'sendNode' | 'authState'>,
  { key, mediaKey }: FileSource,
  signal: AbortSignal,
  answerWithinMs = ANSWER_WITHIN_MS,
): Promise<ReUpload> {
  const { promise, resolve } = Promise.withResolvers<ReUpload>()
  const give = (answer: ReUpload) => () => resolve(answer)
  const onAnswer = (node: BinaryNode) => {
    const answer = node.attrs['id'] === key.id ? parseAnswer(node, key, mediaKey) : null
    if (answer !== null) resolve(answer)
  }
  const giveUp = give({ kind: 'unanswered' })
  const timer = setTimeout(giveUp, answerWithinMs)
  signal.addEventListener('abort', giveUp, { once: true })
  ws.on('CB:notification,type:mediaretry', onAnswer)
  try {
    const { isOwn = false, ...asked } = key
    await sendNode(encryptMediaRetryRequest({ ...asked, fromMe: isOwn }, mediaKey, authState.creds.me?.id ?? ''))
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    ws.off('CB:notification,type:mediaretry', onAnswer)
  }
}

/** Null if it does not answer this request. */
function parseAnswer(node: BinaryNode, key: FileSource['key'], mediaKey: Uint8Array): ReUpload | null {
  try {
    const { key: asked, media } = decodeMediaRetryNode(node)
    if (media === undefined) {
      const isSameSender = (asked.participant ?? null) === key.participant && asked.fromMe === (key.isOwn ?? false)
      const isSame = asked.remoteJid === key.remoteJid && isSameSender
      return isSame ? { kind: 'refused' } : null
    }
    const { result, directPath } = decryptMediaRetryData(media, mediaKey, key.id)
    if (result === SUCCESS && directPath) return { kind: 'uploaded', directPath }
    return { kind: result === GENERAL_ERROR ? 'unanswered' : 'refused' }
  } catch {
    return null
  }
}
