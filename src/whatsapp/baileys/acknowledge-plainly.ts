import { type BinaryNode, buildAckStanza, isJidNewsletter, isJidStatusBroadcast, type WASocket } from 'baileys'
import type { Logger } from 'pino'
import type { LibraryCalls } from './library-scope.ts'
import { isUnencrypted } from './link/phone-copies.ts'

/** A time so long ago that a status from it has expired, in seconds. */
const EXPIRED = '1'

/**
 * Acknowledges posts of newsletters, messages without encryption and statuses without an error. Statuses are then decrypted,
 * because they contain keys; the others are dropped. Anybody between the sender and us could have written a message without
 * encryption, so it is not reported as delivered either. Baileys acknowledges a post that it ignores, and a status that it cannot decrypt, with an error: WhatsApp may
 * then deliver the stanza first at every login, and withhold everything after it (Baileys pull request 2779).
 */
export function acknowledgePlainly(socket: WASocket, calls: LibraryCalls, logger: Logger): void {
  const { ws, authState } = socket
  let isReported = false
  const baileys = ws.listeners('CB:message')
  ws.removeAllListeners('CB:message')
  ws.on('CB:message', (node: BinaryNode) => {
    const { from = '' } = node.attrs
    const isPost = isJidNewsletter(from) === true
    if (isPost || isUnencrypted(node)) {
      if (!isPost && !isReported) logger.warn('message.unencrypted_ignored')
      isReported ||= !isPost
      const ack = buildAckStanza(node, undefined, authState.creds.me?.id)
      calls.inBackground('acknowledge', () => socket.sendNode(ack))
      return
    }
    // Baileys acknowledges an expired status plainly, and does not request it again. A status causes no event.
    if (isJidStatusBroadcast(from)) node.attrs['t'] = EXPIRED
    for (const listener of baileys) listener.call(ws, node)
  })
}
