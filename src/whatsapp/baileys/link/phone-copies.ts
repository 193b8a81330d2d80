import {
  type BinaryNode,
  type CacheStore,
  decodeMessageNode,
  getBinaryNodeChild,
  isJidNewsletter,
  proto,
  type WAMessage,
  type WASocket,
} from 'baileys'
import type { Self } from '../addresses.ts'
import type { LibraryCalls } from '../library-scope.ts'
import { asResend } from '../signal/sending.ts'

/** WhatsApp withholds the content of these from linked devices. */
const WITHHELD: ReadonlySet<string | undefined> = new Set([
  'view_once',
  'bot_unavailable_fanout',
  'hosted_unavailable_fanout',
  'view_once_unavailable_fanout',
])

/**
 * Some messages arrive without content, such as answers to advertisements, and the linked phone has to send a copy. Baileys
 * acknowledges them at once and requests the copy 2 s later: if the socket ends in between, the message is lost. Here the
 * request leaves before the acknowledgement.
 */
export function requestCopiesFirst(socket: WASocket, cache: CacheStore, calls: LibraryCalls, self: () => Self): void {
  const { ws } = socket
  const baileys = ws.listeners('CB:message')
  ws.removeAllListeners('CB:message')
  ws.on('CB:message', (node: BinaryNode) => {
    const passOn = () => {
      for (const listener of baileys) listener.call(ws, node)
    }
    const { id = '', lid = '' } = self()
    const message = lacksContent(node) ? orNull(() => decodeMessageNode(node, id, lid).fullMessage) : null
    if (!message) return passOn()
    calls.inBackground('copy', async () => {
      // A request over an earlier socket may not have left.
      await cache.del(String(message.key.id))
      await asResend(() => socket.requestPlaceholderResend(message.key, message))
      if (!calls.closed.aborted) passOn()
    })
  })
}

function lacksContent(node: BinaryNode): boolean {
  if (isJidNewsletter(node.attrs['from']) || ['enc', 'plaintext'].some(tag => getBinaryNodeChild(node, tag)))
    return false
  return !WITHHELD.has(getBinaryNodeChild(node, 'unavailable')?.attrs['type'])
}

/** The copies in a message from the linked phone. `cache` holds the stubs that WhatsApp delivered, with names that the phone may omit. */
export async function copiesIn({ key, message }: WAMessage, cache: CacheStore): Promise<WAMessage[]> {
  const answer = message?.protocolMessage?.peerDataOperationRequestResponseMessage
  const copies: WAMessage[] = []
  for (const { placeholderMessageResendResponse } of (key.fromMe && answer?.peerDataOperationResult) || []) {
    const bytes = placeholderMessageResendResponse?.webMessageInfoBytes
    const copy = bytes && orNull(() => proto.WebMessageInfo.decode(bytes) as WAMessage)
    // Baileys caches `true` for a message that arrived with content.
    if (copy?.key) copies.push(Object.assign(copy, await cache.get<object | true>(String(copy.key.id))))
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
