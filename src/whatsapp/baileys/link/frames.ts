import type { IncomingMessage } from 'node:http'
import { type BinaryNode, DisconnectReason, type WASocket } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { numberOf } from '../addresses.ts'
import type { LibraryScope } from '../library-scope.ts'
import type { LinkEvents, VitalSigns } from './events.ts'

/** The longest time until the first frame from WhatsApp. */
const FIRST_FRAME_WITHIN_MS = 20_000
/** The longest time until a login, a refusal or a QR code. Usually a second, but more when hundreds log in at once. */
const HANDSHAKE_WITHIN_MS = 60_000
/** A handshake takes a few kilobytes. */
const MAX_HANDSHAKE_BYTES = 256 * 1024

/** Four times the number of messages that wait concurrently, which leaves space for late acknowledgements. */
const MAX_UNANSWERED = 2_048
/** Stands for an error code of WhatsApp that is not a number. */
const UNKNOWN_ERROR = 500

/** Baileys' events for a stanza: `frame` for every stanza, `CB:` by its kind, `TAG:` by the query that it answers. */
const STANZA_EVENT = /^(?:frame$|CB:|TAG:)/

type Done = (error?: Error) => void

/** The `ws` socket inside Baileys' client, which is missing from its types. */
interface RawSocket {
  send(data: Uint8Array, done: Done): void
  once(event: 'upgrade', listener: (response: IncomingMessage) => void): void
}

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

/**
 * Reports and drops a stanza whose listener throws. The next stanzas are still read. Otherwise Baileys would treat the
 * exception as a decryption failure, and the socket would end at each login at which WhatsApp delivers the stanza again.
 */
export function containStanzas({ ws }: WASocket, scope: LibraryScope): void {
  const emit = ws.emit.bind(ws)
  ws.emit = (event: string, ...args: unknown[]) => {
    if (!STANZA_EVENT.test(event)) return emit(event, ...args)
    try {
      return emit(event, ...args)
    } catch (error) {
      scope.failed(error)
      return true
    }
  }
}

/**
 * Delays each frame until the changes that it depends on are durable. Frames are sent in the order of their encryption, as
 * their counters require. Later frames are encrypted in the meantime. After a refused frame no other frame is sent, because
 * the counters would have a gap.
 * @param durable called for each new frame; resolves when its changes are durable, rejects if it must not be sent
 * @param mayAct called just before a frame is sent; false if another node may own the account
 * @param onRefused called at the first refused frame, which makes the socket unusable
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
  let connection: IncomingMessage['socket'] | undefined
  raw.once('upgrade', ({ socket }) => {
    connection = socket
  })
  let previous: Promise<unknown> = Promise.resolve()
  let refused = false

  raw.send = (data, done) => {
    const leave = Promise.all([previous, durable()]).then(() => {
      if (!mayAct()) throw new Error('Another node may own the account.')
      // The frames of one turn of the event loop share one system call, because a commit makes several frames durable at once.
      if (connection?.writableCorked === 0) {
        connection.cork()
        process.nextTick(() => connection?.uncork())
      }
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

export function watchVitalSigns({ ev, ws }: WASocket, signs: VitalSigns): void {
  ws.on('frame', signs.frame)
  ev.on('connection.update', ({ reachoutTimeLock }) => {
    if (!reachoutTimeLock) return
    const { isActive, timeEnforcementEnds } = reachoutTimeLock
    signs.restriction({ active: isActive === true, until: timeEnforcementEnds?.getTime() ?? null })
  })
}

/** Reads acknowledgements from the stanzas: Baileys reports only refusals, and reports them too late. */
export class AcknowledgementReader {
  /** The latest messages written over this link, and how many of their copies are not answered yet, by their IDs. */
  readonly #unanswered = new BoundedMap<string, { address: string; copies: number }>(MAX_UNANSWERED)

  /** Call for each copy that the service writes, before it is written. Copies that Baileys sends when a device requests them are not expected. */
  expect(whatsappId: string, address: string): void {
    const { copies } = this.#unanswered.get(whatsappId) ?? { copies: 0 }
    this.#unanswered.set(whatsappId, { address, copies: copies + 1 })
  }

  /** @param onStaleLid called if WhatsApp has assigned another LID to the number at this address */
  listen({ ws }: WASocket, events: Pick<LinkEvents, 'acknowledged'>, onStaleLid: (address: string) => void): void {
    ws.on('CB:ack', ({ attrs: { id, from, error, phash, refresh_lid, ...rest } }: BinaryNode) => {
      // Not every network sends the class, so the ID of a message of ours is enough.
      const expected = id && this.#unanswered.get(id)
      if (!id || (rest['class'] !== 'message' && !expected)) return
      // Refuses a copy that a device has requested. The message itself was acknowledged.
      if (error !== undefined && !expected) return
      if (expected && expected.copies > 1) this.#unanswered.set(id, { ...expected, copies: expected.copies - 1 })
      else this.#unanswered.delete(id)
      if (expected && refresh_lid === 'true' && numberOf(expected.address)) onStaleLid(expected.address)
      const code = error === undefined ? undefined : Number.parseInt(error, 10) || UNKNOWN_ERROR
      events.acknowledged({ whatsappId: id, chat: from, error: code, devicesHash: phash })
    })
  }
}
