import type { Obeyed, Order } from './scenario/order.ts'
import type { ScenarioState } from './scenario/scenario.ts'

/** One change of a stored value; `null` deletes the key. */
export interface StorageChange {
  key: string
  value: Uint8Array | null
}

/**
 * Where a network keeps what it must remember. One scope per account.
 * All changes of one write are durable together, or not at all, once the promise resolves.
 * The network never writes to one scope twice at the same time.
 */
export interface NetworkStorage {
  read(scope: string): Promise<ReadonlyMap<string, Uint8Array>>
  write(scope: string, changes: readonly StorageChange[]): Promise<void>
}

export interface SimulatorTimings {
  /** How long after WhatsApp's acknowledgement a recipient's delivery receipt is due. Default 200. */
  deliveredAfterMs?: number
  /** How long after WhatsApp's acknowledgement a recipient's read receipt is due. Default 600. */
  readAfterMs?: number
  /** How long after a message `15005550005` answers it. Default 300. */
  answeredAfterMs?: number
}

export interface SimulatorOptions {
  /** Default: in memory, forgotten with the process. */
  storage?: NetworkStorage
  /** Default 127.0.0.1. */
  host?: string
  /** Default 0: any free port. */
  port?: number
  /** Listens for `wss:` (and `https:`) with a self-signed certificate, made at the start. Default false. */
  tls?: boolean
  timings?: SimulatorTimings
  /**
   * The least number of one-time pre-keys that a client is told it has left, whatever it uploaded.
   * 0 tells the truth, so a fresh client uploads its keys (Baileys: 812 of them, about 100 ms of CPU) and
   * contacts use them up. A higher number (500) makes linking cheap: contacts then open sessions without a
   * one-time key, as WhatsApp does when a device's keys have run out. Default 0.
   */
  claimedPreKeys?: number
  /** Told of what went wrong inside the network, in one line without keys or message text. Default: nobody is. */
  log?: (line: string) => void
}

/** A message as a simulated contact sends it. */
export interface ContactMessage {
  /** Phone number of the contact, digits only. */
  from: string
  /** Phone number of the account it goes to, digits only. */
  to: string
  text: string
  /** Group JID, when it is written in a group. */
  group?: string
  /** The contact's push name; kept for the contact's later messages. */
  name?: string
  /** Its ciphertext cannot be decrypted, however often it is delivered, until the client asks for another. */
  undecryptable?: boolean
}

/** A message on a simulated phone. One per WhatsApp id, however often it arrived. */
export interface ReceivedMessage {
  /** WhatsApp's message id, chosen by the sender. */
  id: string
  /** Phone number of the sender, digits only. */
  from: string
  /** Empty for a message without text. */
  text: string
  /** Group JID, when it came in a group. */
  group?: string
  /** Milliseconds since the epoch, of the first copy. */
  receivedAt: number
  /** How often this id arrived. */
  copies: number
  /**
   * How often the phone had to ask for it before it could read it; absent where it could at once. On the phone of an
   * account, which reads what contacts write: how often its linked client asked.
   */
  askedFor?: number
  /** Numbers of the recipient's other devices that have read it. */
  companions?: number[]
}

export interface AccountInfo {
  key: string
  /** Digits only. */
  phone: string
  /** Whether a client is linked. */
  linked: boolean
  /** Whether the linked client is logged in at this moment. */
  online: boolean
  /** What a client that is logged in has said it is: a version of WhatsApp Web, as `2.3000.1035194821`. */
  version?: string
}

/** Why a call on a simulator was refused. */
export type SimulatorErrorCode =
  | 'unknown_qr'
  | 'unknown_pairing_code'
  /** The client went away, did not confirm that it is linked, or was being linked by another phone. */
  | 'linking_failed'
  | 'unknown_account'
  | 'not_a_member'
  | 'invalid_argument'
  /** The storage, or something else that should not, failed. */
  | 'failed'
  /** The network's thread died. */
  | 'crashed'
  | 'closed'

/** A refusal; every method of {@link Simulator} may reject with one. */
export class SimulatorError extends Error {
  readonly code: SimulatorErrorCode

  constructor(code: SimulatorErrorCode, message: string) {
    super(message)
    this.name = 'SimulatorError'
    this.code = code
  }
}

/** A running WhatsApp network. */
export interface Simulator {
  /** `ws://127.0.0.1:PORT/ws/chat`, for Baileys' `waWebSocketUrl`. */
  readonly url: string
  /**
   * Makes (or loads from storage) the simulated phone `key`. Its number is derived from the key, the same for ever,
   * and never one of the numbers with a meaning. Until it is open, its client is told to come back later (503) if there is
   * a storage, and that it is not known (401) if there is none.
   */
  openAccount(key: string): Promise<{ phone: string }>
  /**
   * The phone of account `account` (opened if need be; without one a new account is made) scans a QR text and links
   * the client that shows it, in place of one linked before. `name` is the phone's push name from now on.
   * @throws SimulatorError `unknown_qr` when no connected client shows this QR any more; `linking_failed`
   */
  scanQr(qr: string, account?: string, name?: string): Promise<{ phone: string }>
  /**
   * The phone with this number types the 8 characters that a client shows. An account is made for the number
   * if it has none. @throws SimulatorError `unknown_pairing_code`; `linking_failed`
   */
  enterPairingCode(code: string, phone: string): Promise<{ phone: string }>
  /**
   * Takes the account out of this network and leaves its scope as it is, so that another network can open it. Its client
   * is told 503, now and if it comes back.
   */
  closeAccount(key: string): Promise<void>
  /** Unlinks its client, forgets the account and erases its scope. Unknown keys are fine. */
  removeAccount(key: string): Promise<void>
  /** The phone removes its linked client, which is told so (401 device_removed), at its next login if it is away. */
  unlink(phone: string): Promise<void>
  /**
   * A simulated contact writes to an account. Resolves with the message's WhatsApp id once the network holds it durably:
   * delivery is then the network's duty, also after a restart.
   */
  writeAs(message: ContactMessage): Promise<{ id: string }>
  /** Makes contacts and accounts members of a group, for each account among them. */
  joinGroup(group: string, numbers: readonly string[]): Promise<void>
  /** What the phone of `number` (an account's or a contact's) has received, in order. */
  inbox(number: string): Promise<readonly ReceivedMessage[]>
  listAccounts(): Promise<readonly AccountInfo[]>
  /** Misbehaves as ordered. @throws SimulatorError `invalid_argument`; `unknown_account` */
  misbehave(order: Order): Promise<Obeyed>
  /** Which rules are set and which stanzas are held. */
  scenario(): Promise<ScenarioState>
  /** Closes every socket and the port. What was promised stays in the storage. */
  close(): Promise<void>
}
