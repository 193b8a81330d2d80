/**
 * A client that could not download the file of a message asks its phone to upload the file again. The phone answers with
 * the new direct path, or with the reason why it cannot. The media key and the encrypted file stay the same.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { proto } from 'baileys/WAProto/index.js'
import type { Account, Effect } from '../account.ts'
import { pnJid } from '../addresses.ts'
import { readContent } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { bytes, child, type Node, node, seconds } from '../wire/nodes.ts'
import { directPathOf, fileIdIn } from './direct-path.ts'

const { ResultType } = proto.MediaRetryNotification

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16
/** The server's error for a message that the phone does not have. */
const NOT_FOUND = '2'

const RESULTS = {
  upload: ResultType.SUCCESS,
  decryption_error: ResultType.DECRYPTION_ERROR,
  general_error: ResultType.GENERAL_ERROR,
} as const

/** Call it inside `account.apply` or `applyDurably`. */
export async function uploadAgain(network: Network, account: Account, request: Node): Promise<Effect[]> {
  const { id = '' } = request.attrs
  const answer = network.scenario.mediaRetries
  const rmr = child(request, 'rmr')
  if (answer === 'none' || !rmr) return []
  // The request states whether the account wrote the message. If that is wrong, the phone finds nothing.
  const isOwn = account.inboxes.find(id)?.from === account.phone
  const content = rmr.attrs['from_me'] === `${isOwn}` ? account.inboxes.contentOf(id) : null
  const media = content && readContent(content).media
  const directPath = media && answer === 'upload' ? await copyOf(network, media.directPath) : null
  const now = Date.now()
  const reply = () => {
    if (!media || answer === 'not_found' || (answer === 'upload' && directPath === null)) {
      return node('error', { code: NOT_FOUND })
    }
    const key = retryKey(media.facts.mediaKey)
    const result = isReadable(request, id, key) ? RESULTS[answer] : ResultType.DECRYPTION_ERROR
    return sealed(id, key, { stanzaId: id, result, ...(result === ResultType.SUCCESS && { directPath }) })
  }
  const attrs = { from: pnJid(account.phone), type: 'mediaretry', id, t: seconds(now) }
  const notification = node('notification', attrs, [reply(), node('rmr', rmr.attrs)])
  return [release(network, account, account.queue.add(notification, now))]
}

/** Uploads the file again and returns its new direct path. Null if the phone no longer has it. */
async function copyOf(network: Network, directPath: string): Promise<string | null> {
  const named = fileIdIn(directPath)
  const copy = named && (await network.media.files.copy(named.id))
  return copy && directPathOf(copy)
}

/** True if the client has proved that it knows the media key. */
function isReadable(request: Node, id: string, key: Buffer): boolean {
  const encrypt = child(request, 'encrypt')
  const [sealedId, iv] = [bytes(encrypt, 'enc_p'), bytes(encrypt, 'enc_iv')]
  if (!sealedId || !iv) return false
  try {
    const decipher = createDecipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(id)).setAuthTag(sealedId.subarray(-TAG_BYTES))
    const plain = Buffer.concat([decipher.update(sealedId.subarray(0, -TAG_BYTES)), decipher.final()])
    return proto.ServerErrorReceipt.decode(plain).stanzaId === id
  } catch {
    return false
  }
}

function sealed(id: string, key: Buffer, notification: proto.IMediaRetryNotification): Node {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(id))
  const plain = proto.MediaRetryNotification.encode(notification).finish()
  const ciphertext = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  return node('encrypt', {}, [node('enc_p', {}, ciphertext), node('enc_iv', {}, iv)])
}

function retryKey(mediaKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', mediaKey, '', 'WhatsApp Media Retry Notification', KEY_BYTES))
}
