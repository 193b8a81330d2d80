import type { WASocket } from 'baileys'

type Done = (error?: Error) => void

/** The `ws` socket inside Baileys' client, which is missing in its types. */
interface RawSocket {
  send(data: Uint8Array, done: Done): void
}

/**
 * Delays each frame until the changes that it depends on are durable. Frames are sent in the order of their encryption, as
 * their counters require. Later frames are encrypted in the meantime. After a refused frame no other frame is sent, because
 * the counters would have a gap.
 * @param durable called for each new frame; resolves when its changes are durable, rejects if it must not be sent
 * @param mayAct called just before a frame is sent; false if another node may own the account
 * @param onRefused the socket is unusable
 */
export function sendDurably(
  { ws }: WASocket,
  durable: () => Promise<unknown>,
  mayAct: () => boolean,
  onRefused: () => void,
): void {
  const raw = (ws as unknown as { socket: RawSocket | null }).socket
  if (!raw) throw new Error('Baileys has not opened its socket.')
  const send = raw.send.bind(raw)
  let previous: Promise<unknown> = Promise.resolve()
  let refused = false

  raw.send = (data, done) => {
    const leave = Promise.all([previous, durable()]).then(() => {
      if (!mayAct()) throw new Error('Another node may own the account.')
      send(data, done)
    })
    previous = leave
    leave.catch(error => {
      done(error)
      if (!refused) onRefused()
      refused = true
    })
  }
}
