import type { PairingCode } from '../../domain/connection/connection.ts'
import type { MediaPlace, MediaTerms } from '../../domain/media.ts'
import type { SendTrace } from '../../domain/trace-context.ts'
import type { HintTopic } from '../../store/hints.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Moment } from '../../store/leases/renewal.ts'
import type { Store } from '../../store/store.ts'
import type { ConnectionNetwork, ConnectionSettings } from '../connection/connection-settings.ts'

/** The parts of the store that a thread calls. Arguments and results are plain data. */
export type ThreadStore = Pick<
  Store,
  'connections' | 'messages' | 'events' | 'credentials' | 'numbers' | 'paces' | 'directory' | 'downloads'
> & {
  media: Pick<Store['media'], 'find' | 'begin' | 'extend' | 'discard' | 'forget'>
}
export type Subject = keyof ThreadStore

/** The hints that a connection listens to. */
export const FORWARDED_HINTS = [
  'goal',
  'queued',
  'plans',
  'numbers',
  'files',
  'pace',
  'typing',
] as const satisfies readonly HintTopic[]

/** With `linksItself`, the main thread has the network's phone scan QR codes and enter pairing codes. */
export type ThreadNetwork =
  | Exclude<ConnectionNetwork, { kind: 'simulated' }>
  | { kind: 'simulated'; url: string; linksItself: boolean }

export interface ThreadMedia extends MediaTerms {
  place: MediaPlace
}

/** The data that a thread gets at its start. */
export interface ThreadData {
  settings: ConnectionSettings
  /** Where the files of messages are. Null: this node has no storage. */
  media: ThreadMedia | null
  logLevel: string
  /** Whether other nodes write to the same tables. */
  hintsShared: boolean
  /** How many threads open sockets at the same time. */
  threads: number
  /** How long a connection to one of several addresses may take before the next address is tried. Node's setting is per thread. */
  addressTurnMs: number
  /** Whether the thread reports sends. */
  traces: boolean
  validity: Validity
}

/** The last renewal of the leases, and the store's time as an offset from the machine's steady clock. */
export interface Validity {
  renewedAt: Moment | null
  clockOffsetMs: number
}

/** From the main thread. Connections are numbered, because an instance may have several, one after another. */
export type ToThread =
  | { kind: 'start'; connection: number; lease: Lease; network: ThreadNetwork }
  | { kind: 'stop'; connection: number; logOut: boolean }
  /** The connection's lease is lost: it must not send another frame, even if the other leases are valid. */
  | { kind: 'revoke'; connection: number }
  | { kind: 'hint'; topic: HintTopic; instanceId: string; origin: 'here' | 'elsewhere'; about?: string | undefined }
  | { kind: 'validity'; validity: Validity }
  | { kind: 'result'; call: number; value: unknown }
  | { kind: 'error'; call: number; error: PlainError }
  | { kind: 'heartbeat' }

/** From a thread to the main thread. */
export type FromThread =
  | { kind: 'call'; call: number; subject: Subject; method: string; args: unknown[] }
  | { kind: 'linkBy'; call: number; connection: number; qr: string; pairing: PairingCode | null }
  | { kind: 'linking'; connection: number; isLinking: boolean }
  | { kind: 'leaseLost'; connection: number }
  | { kind: 'stopped'; connection: number }
  /** The last known renewal of the leases is too old: they should be renewed now. */
  | { kind: 'renew' }
  | { kind: 'log'; line: string }
  | { kind: 'sent'; send: SendTrace }
  | { kind: 'heartbeat' }

/** An error without its class, which cannot be sent between threads. */
export interface PlainError {
  name: string
  message: string
  stack: string | undefined
  instanceId?: string
  cause?: PlainError
}

/** Sends the messages of one turn of the event loop as one batch, because each post wakes the other thread. */
export class BatchedPort<T> {
  readonly #port: { postMessage(messages: T[]): void }
  readonly #onUndeliverable: (message: T, error: unknown) => void
  #messages: T[] = []

  /** @param onUndeliverable the message cannot be cloned; the others of its turn are sent */
  constructor(port: { postMessage(messages: T[]): void }, onUndeliverable: (message: T, error: unknown) => void) {
    this.#port = port
    this.#onUndeliverable = onUndeliverable
  }

  post(message: T): void {
    if (this.#messages.length === 0) setImmediate(this.flush)
    this.#messages.push(message)
  }

  /** Sends the waiting messages now, if one of them must not wait for the end of the turn. */
  readonly flush = (): void => {
    const messages = this.#messages
    if (messages.length === 0) return
    this.#messages = []
    try {
      this.#port.postMessage(messages)
    } catch {
      for (const message of messages) this.#sendAlone(message)
    }
  }

  #sendAlone(message: T): void {
    try {
      this.#port.postMessage([message])
    } catch (error) {
      this.#onUndeliverable(message, error)
    }
  }
}
