import {
  type BinaryNode,
  type CacheStore,
  decodeMessageNode,
  getBinaryNodeChild,
  isJidGroup,
  isJidNewsletter,
  isJidStatusBroadcast,
  proto,
  type WAMessage,
  type WASocket,
} from 'baileys'
import type { Logger } from 'pino'
import type { Self } from '../addresses.ts'
import type { LibraryCalls } from '../library-scope.ts'
import { asResend } from '../signal/send-context.ts'
import { ownReceipt } from './own-receipts.ts'

/** WhatsApp withholds the content of messages of these types from linked devices. */
const VIEW_ONCE = ['view_once', 'view_once_unavailable_fanout']
const WITHHELD: readonly (string | undefined)[] = [...VIEW_ONCE, 'bot_unavailable_fanout', 'hosted_unavailable_fanout']

interface CopyOptions {
  cache: CacheStore
  calls: LibraryCalls
  logger: Logger
  self(): Self
  /** False if the sender of this message has caused too many requests. */
  mayRequest(id: string): boolean
}

/**
 * Some messages arrive without content, such as replies to advertisements, and the linked phone has to send a copy. Baileys
 * acknowledges them at once and requests the copy 2 s later: if the socket ends in between, the message is lost. Here the
 * request leaves before the acknowledgement.
 */
export function requestCopiesFirst(socket: WASocket, { cache, calls, logger, self, mayRequest }: CopyOptions): void {
  const { ws } = socket
  const baileys = ws.listeners('CB:message')
  ws.removeAllListeners('CB:message')
  ws.on('CB:message', (node: BinaryNode) => {
    const passOn = () => {
      for (const listener of baileys) listener.call(ws, node)
    }
    const { id = '', lid = '' } = self()
    const message = lacksContent(node) ? orNull(() => decodeMessageNode(node, id, lid).fullMessage) : null
    // Baileys would only acknowledge it.
    const receipt = hasContent(node) ? null : ownReceipt(node, self())
    if (!message && !receipt) return passOn()
    calls.inBackground('copy', async () => {
      const isRequested = message === null || (await request(message))
      // Without a request, WhatsApp delivers the message again at a later login, and the copy is requested then.
      if (receipt && isRequested) await socket.sendNode({ tag: 'receipt', attrs: receipt })
      if (!calls.closed.aborted) passOn()
    })
  })

  async function request(message: WAMessage): Promise<boolean> {
    const whatsappId = String(message.key.id)
    const isAllowed = mayRequest(whatsappId)
    if (!isAllowed) logger.warn({ whatsappId }, 'message.copy_not_requested')
    // A request over an earlier socket may not have left. Baileys requests nothing that is in the cache.
    if (isAllowed) await cache.del(whatsappId)
    else await cache.set(whatsappId, true)
    if (isAllowed) await asResend(() => socket.requestPlaceholderResend(message.key, message))
    return isAllowed
  }
}

/** Reads the content itself, which `IncomingMessages` may have changed. */
function hasContent({ content }: BinaryNode): boolean {
  return Array.isArray(content) && content.some(({ tag }) => tag === 'enc' || tag === 'plaintext')
}

function lacksContent(node: BinaryNode): boolean {
  const { from = '' } = node.attrs
  if (isJidNewsletter(from) || isJidStatusBroadcast(from)) return false
  if (hasContent(node)) return false
  return !WITHHELD.includes(withheldAs(node))
}

export function isWithheldViewOnce(node: BinaryNode): boolean {
  const withheld = withheldAs(node)
  const isViewOnce = withheld !== undefined && VIEW_ONCE.includes(withheld)
  return isViewOnce && !getBinaryNodeChild(node, 'enc') && !isJidNewsletter(node.attrs['from'])
}

/** True for a message whose content is not encrypted. Reads the content itself, which `IncomingMessages` may have changed. */
export function isUnencrypted({ content }: BinaryNode): boolean {
  const tags = Array.isArray(content) ? content.map(({ tag }) => tag) : []
  return tags.includes('plaintext') && !tags.includes('enc')
}

function withheldAs(node: BinaryNode): string | undefined {
  return getBinaryNodeChild(node, 'unavailable')?.attrs['type']
}

/**
 * The copies in a message from the linked phone. `cache` holds the stubs that WhatsApp delivered. They contain names
 * that the phone may omit.
 */
export async function copiesIn({ key, message }: WAMessage, cache: CacheStore): Promise<WAMessage[]> {
  const answer = message?.protocolMessage?.peerDataOperationRequestResponseMessage
  const copies: WAMessage[] = []
  for (const { placeholderMessageResendResponse } of (key.fromMe && answer?.peerDataOperationResult) || []) {
    const bytes = placeholderMessageResendResponse?.webMessageInfoBytes
    const copy = bytes && orNull(() => proto.WebMessageInfo.decode(bytes) as WAMessage)
    // Baileys caches `true` for a message that arrived with content.
    if (!copy?.key) continue
    // The copy of a group message may name its author only outside the message key (in `participant`).
    if (isJidGroup(copy.key.remoteJid!) && !copy.key.fromMe) copy.key.participant ||= copy.participant ?? null
    copies.push(Object.assign(copy, await cache.get<object | true>(String(copy.key.id))))
  }
  return copies
}

/** Null if `decode` throws. */
export function orNull<T>(decode: () => T): T | null {
  try {
    return decode()
  } catch {
    return null
  }
}
