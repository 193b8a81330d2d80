import { DisconnectReason, type WASocket } from 'baileys'

/** The time until the first frame from WhatsApp. */
const FIRST_FRAME_WITHIN_MS = 20_000
/** The time until a login, a refusal or a QR code. Usually a second, but more when hundreds log in at once. */
const HANDSHAKE_WITHIN_MS = 60_000
/** A handshake takes a few kilobytes. */
const MAX_HANDSHAKE_BYTES = 256 * 1024

/**
 * Limits the time and bytes of a handshake, and reports frames that cannot be decrypted. Baileys' `connectTimeoutMs` limits
 * each step alone and counts no bytes: a slow server could keep a socket forever, and a frame of 16 MiB would be copied
 * with every packet. After a frame that cannot be decrypted, no later frame can be, but Baileys does not end the socket.
 * @param onFailed receives Baileys' status code and, if a frame caused it, the error; not called after `closed`
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
  const silence = setTimeout(giveUp, FIRST_FRAME_WITHIN_MS)
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
