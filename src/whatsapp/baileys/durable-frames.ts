import type { WASocket } from 'baileys'

type Done = (error?: Error) => void

/** The `ws` socket inside Baileys' client, which its types keep to themselves. */
interface RawSocket {
  send(data: Uint8Array, done: Done): void
}

/**
 * Holds every frame back until what it rests on is durable. Frames leave in the order in which they were encrypted,
 * which their counters demand; the encryption of the next ones need not wait. Once a frame was refused nothing
 * leaves any more: the peer would miss its counter.
 * @param durable resolves when all that the frame just made rests on is durable; rejects if it must not leave
 * @param mayAct asked at the last moment: whether the account can be nobody else's meanwhile
 * @param onRefused the socket is of no use any more
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
      if (!mayAct()) throw new MayNotAct()
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

/** The lease was not renewed for so long that another node may have taken over. */
class MayNotAct extends Error {
  override readonly name = 'MayNotAct'
}
