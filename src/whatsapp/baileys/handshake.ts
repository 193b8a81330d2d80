import { DisconnectReason, type WASocket } from 'baileys'

/** Until WhatsApp says anything at all. */
const FIRST_WORD_WITHIN_MS = 20_000
/** Until WhatsApp lets us in, refuses us or offers a code: a second, or more where hundreds log in at once. */
const HANDSHAKE_WITHIN_MS = 60_000
/** What it says until then is a few kilobytes. */
const MAX_HANDSHAKE_BYTES = 256 * 1024

/**
 * Gives up on a server that leads nowhere. Baileys could limit each step alone (`connectTimeoutMs`, which is off) and counts
 * no bytes, so that one which drips keeps a socket for ever, and one which announces a frame of 16 MiB has it copied
 * with every packet. Nor does it end the socket at a frame that cannot be decrypted, although none after it can be.
 * @param onFailed told Baileys' status code, until `closed`; and the error that a frame ended in
 */
export function watchHandshake(
  socket: WASocket,
  closed: AbortSignal,
  onFailed: (code: number, error?: unknown) => void,
): void {
  const { ws } = socket
  let isOver = false
  let bytes = 0
  const giveUp = () => fail(DisconnectReason.timedOut)
  const silence = setTimeout(giveUp, FIRST_WORD_WITHIN_MS)
  const timer = setTimeout(giveUp, HANDSHAKE_WITHIN_MS)
  const finish = () => {
    isOver = true
    clearTimeout(silence)
    clearTimeout(timer)
  }
  const fail = (code: number, error?: unknown) => {
    finish()
    if (!closed.aborted) onFailed(code, error)
  }
  closed.addEventListener('abort', finish, { once: true })
  ws.once('CB:success', finish)
  ws.once('CB:iq,type:set,pair-device', finish)

  const baileys = ws.listeners('message')
  ws.removeAllListeners('message')
  ws.on('message', (data: Buffer) => {
    clearTimeout(silence)
    bytes += data.length
    if (!isOver && bytes > MAX_HANDSHAKE_BYTES) return fail(DisconnectReason.badSession)
    for (const listener of baileys) {
      Promise.resolve(listener.call(ws, data)).catch(error => fail(DisconnectReason.badSession, error))
    }
  })
}
