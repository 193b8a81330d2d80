import { type BinaryNode, buildAckStanza, isJidNewsletter, isJidStatusBroadcast, type WASocket } from 'baileys'
import type { LibraryCalls } from './library-scope.ts'

/** A time so long ago that a status from it has expired, in seconds. */
const EXPIRED = '1'

/**
 * Acknowledges posts of newsletters and statuses without an error. Posts are then dropped; statuses are decrypted, because they
 * contain keys. Baileys acknowledges a post that it ignores, and a status that it cannot decrypt, with an error: WhatsApp may
 * then deliver the stanza first at every login, and withhold everything behind it (Baileys pull request 2779).
 */
export function acknowledgePlainly(socket: WASocket, calls: LibraryCalls): void {
  const { ws, authState } = socket
  const baileys = ws.listeners('CB:message')
  ws.removeAllListeners('CB:message')
  ws.on('CB:message', (node: BinaryNode) => {
    const { from = '' } = node.attrs
    if (isJidNewsletter(from)) {
      const ack = buildAckStanza(node, undefined, authState.creds.me?.id)
      calls.inBackground('acknowledge', () => socket.sendNode(ack))
      return
    }
    // Baileys acknowledges an expired status plainly, and does not request it again. A status causes no event.
    if (isJidStatusBroadcast(from)) node.attrs['t'] = EXPIRED
    for (const listener of baileys) listener.call(ws, node)
  })
}
