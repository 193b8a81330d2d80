import type { GroupChange, GroupState } from './contacts/group-types.ts'
import type { ContactMessage, OwnerMessage } from './contacts/message-types.ts'
import type { ReceivedMedia } from './media/media-types.ts'
import type { Order, OrderResult } from './scenario/order.ts'
import type { ScenarioState } from './scenario/scenario.ts'

/** One change of a stored value; `null` deletes the key. */
export interface StorageChange {
  key: string
  value: Uint8Array | null
}

/**
 * The durable storage of a network. Each account has one scope. All changes of one write are durable together, or not
 * at all, once the promise resolves. The network never has two writes to one scope at the same time.
 */
export interface NetworkStorage {
  read(scope: string): Promise<ReadonlyMap<string, Uint8Array>>
  write(scope: string, changes: readonly StorageChange[]): Promise<void>
}

export interface SimulatorTimings {
  /** Milliseconds from WhatsApp's acknowledgement to the recipient's delivery receipt. Default 200. */
  deliveredAfterMs?: number
  /** Milliseconds from WhatsApp's acknowledgement to the recipient's read receipt. Default 600. */
  readAfterMs?: number
  /** Milliseconds from a message to the answer of `15005550005`. Default 300. */
  answeredAfterMs?: number
}

export interface SimulatorOptions {
  /** Default: in memory, lost with the process. */
  storage?: NetworkStorage
  /** Default 127.0.0.1. */
  host?: string
  /** Default 0: any free port. */
  port?: number
  /** Listens for `wss:` (and `https:`) with a self-signed certificate, created at the start. Default false. */
  tls?: boolean
  /** The port of the media host. Default 0: any free port. */
  mediaPort?: number
  /**
   * Keeps media files across restarts. If they exceed 1 GiB, the oldest are erased. Default: a temporary folder, created when
   * needed and erased by `close`.
   */
  mediaFolder?: string
  timings?: SimulatorTimings
  /**
   * The network reports to a client that at least this many of its one-time pre-keys are left, whatever it has
   * uploaded. At 0 the report is true: a new client uploads its keys (Baileys: 812 of them, about 100 ms of CPU) and
   * contacts use them up. A higher number (500) makes linking cheap: contacts then open sessions without a one-time
   * key, as WhatsApp does when a device's keys have run out. Default 0.
   */
  claimedPreKeys?: number
  /**
   * Phones send a newly linked client the key of the shared settings, and their chats. Baileys with its default options waits
   * 20 s for that. Default false; the program does it.
   */
  syncsAfterLinking?: boolean
  /**
   * The phone of an account with a linked client reads what arrives, as the phones of contacts do. Default true. The program
   * leaves reading to the client, as on WhatsApp.
   */
  readsForClients?: boolean
  /** Milliseconds that a stanza takes from a client to the network, or back. Default 0. */
  latencyMs?: number
  /** Receives each internal error as one line without keys or message text. Default: errors are not reported. */
  log?: (line: string) => void
}

export type { ContactMessage, MessageKinds, OwnerMessage } from './contacts/message-types.ts'

/** A contact's typing, as its client reports it. */
export interface ContactTyping {
  from: string
  to: string
  /** Group JID, when it types in a group. */
  group?: string
  state: 'composing' | 'recording' | 'paused'
}

/** A contact in the address book of a phone. */
export interface SavedContact {
  number: string
  name: string
}

/** A phone that types a pairing code which was requested for another number. */
export interface CodeReader {
  /** The key of its account, which is opened if necessary. */
  account: string
  /** A QR text of the client, which distinguishes it from others that requested a code for the same number. */
  qr: string
}

/** Whether a contact is online, as an account sees it. */
export interface ContactPresence {
  from: string
  to: string
  available: boolean
  /** Seconds since the epoch, while it is not available. Default: it is hidden. */
  lastSeen?: number
}

/** Whether the client of a number's account is available, and the last typing that its phone shows in each chat. */
export interface PhonePresence {
  available: boolean
  typing: { from: string; group?: string; state: ContactTyping['state'] }[]
}

/** A contact calls an account. */
export interface ContactCall {
  from: string
  to: string
  /** Default false: a voice call. */
  video?: boolean
  /** Group JID, if the contact calls the whole group. */
  group?: string
}

export interface Call extends ContactCall {
  id: string
  /** `rejected` by the client, `ended` by the contact. */
  state: 'ringing' | 'rejected' | 'ended'
}

/** Changes of a contact's profile. A field that is not given stays as it is. */
export interface ContactProfile {
  from: string
  /** The account whose contact it is. */
  to: string
  about?: string
  /** A JPEG; null removes the picture. */
  picture?: Uint8Array | null
  username?: string
}

/** The profile of a person as others see it. */
export interface ShownProfile {
  about?: string
  username?: string
  picture?: { id: string; url: string }
  /** The numbers that the account has blocked. */
  blocked: string[]
}

/** Effects of a message besides its text or file. */
export interface MessageActions {
  /** The reaction to another message; an empty `emoji` removes it. */
  reaction?: { to: string; emoji: string }
  /** The message that gets another text. */
  edit?: { id: string; text: string }
  /** The ID of the message that it deletes for everyone. */
  deletes?: string
  /** The number that a deletion names as the author of the message. Deletions by an admin of the group name one. */
  deletesOf?: string
  poll?: { name: string; options: string[] } | undefined
  /** The chosen options of a poll; null if the phone does not have the poll. */
  vote?: { poll: string; options: string[] | null }
}

/**
 * A message on a simulated phone. One per WhatsApp ID, however often it arrived. `edited`, `deleted`, `reactions` and
 * `votes` are the effects of later messages.
 */
export interface ReceivedMessage extends MessageActions {
  /** WhatsApp's message ID, chosen by the sender. */
  id: string
  /** Phone number of the sender, digits only. */
  from: string
  /** Empty for a message without text. */
  text: string
  /** The file of a media message, after the phone has downloaded it. */
  media?: ReceivedMedia
  /** WhatsApp's ID of the message that it quotes. */
  quoted?: string
  /**
   * The whole message with the field names of WhatsApp's `Message`, unless it is a file or a text without anything else: a reaction,
   * an edit, a deletion, a text with mentions.
   */
  details?: Record<string, unknown>
  /** Group JID, if it came in a group. */
  group?: string
  /** Milliseconds since the epoch, of the first copy. */
  receivedAt: number
  copies: number
  /**
   * How often the phone asked for the message again before it could read it; absent if it never asked. An account's own phone
   * can read every message, so there it counts the requests of the linked client.
   */
  askedFor?: number
  /** Numbers of the recipient's other devices that have read it. */
  companions?: number[]
  /** The numbers that it mentions. */
  mentions?: string[]
  /** Its present text, if its author has edited it in time. */
  edited?: string
  /** If its author, or an admin of its group, has deleted it in time. */
  deleted?: true
  /** Each emoji, by the phone number of the person who reacted. */
  reactions?: Record<string, string>
  /** The votes in a poll: the chosen options, by the number of the voter. */
  votes?: Record<string, string[]>
  /** The whole message with the field names of WhatsApp's `Message`. Only if it was asked for. */
  message?: Record<string, unknown>
}

export interface AccountInfo {
  key: string
  /** Digits only. */
  phone: string
  linked: boolean
  online: boolean
  /** The WhatsApp Web version that the logged-in client states, as `2.3000.1035194821`. */
  version?: string
}

/** Why a call on a simulator was refused. */
export type SimulatorErrorCode =
  | 'unknown_qr'
  | 'unknown_pairing_code'
  /** The client disconnected, did not confirm the linking, or was being linked by another phone. */
  | 'linking_failed'
  | 'unknown_account'
  | 'not_a_member'
  | 'invalid_argument'
  /** An internal failure, for example of the storage. */
  | 'failed'
  | 'crashed'
  /** A thread could not start because another socket has its port. */
  | 'port_in_use'
  | 'closed'

/** A refusal. Every method of {@link Simulator} may reject with one. */
export class SimulatorError extends Error {
  readonly code: SimulatorErrorCode

  constructor(code: SimulatorErrorCode, message: string) {
    super(message)
    this.name = 'SimulatorError'
    this.code = code
  }
}

/** How clients reach the media host. */
export interface MediaAccess {
  /** `host:port`, as the answer to `media_conn` names them. */
  readonly hosts: readonly string[]
  /** The self-signed certificate that clients must trust, in PEM. */
  readonly certificate: string
}

export interface Simulator {
  /** `ws://127.0.0.1:PORT/ws/chat`, for Baileys' `waWebSocketUrl`. */
  readonly url: string
  readonly media: MediaAccess
  /**
   * Creates the simulated phone `key`, or loads it from the storage. Its number is derived from the key, never changes, and
   * never has a special behaviour. Until the account is open, its client gets 503 (try later) if there is a storage, and
   * 401 (unknown) if there is none.
   */
  openAccount(key: string): Promise<{ phone: string }>
  /**
   * The phone of `account` scans a QR text and links the client that shows it, replacing any client linked before. The
   * account is opened if necessary; if none is given, a new one is created. `name` becomes the phone's push name.
   * @throws SimulatorError `unknown_qr` if no connected client shows this QR code any more; `linking_failed`
   */
  scanQr(qr: string, account?: string, name?: string): Promise<{ phone: string }>
  /**
   * The phone with this number types the 8 characters that a client shows. An account is created for the number if it
   * has none. With `by`, another phone types them.
   * @param phone the number that the client has requested the code for
   * @throws SimulatorError `unknown_pairing_code`; `unknown_qr`; `linking_failed`
   */
  enterPairingCode(code: string, phone: string, by?: CodeReader): Promise<{ phone: string }>
  /**
   * Removes the account from this network and keeps its scope, so another network can open it. Its client gets 503 now
   * and when it reconnects.
   */
  closeAccount(key: string): Promise<void>
  /**
   * Switches the phone off or on. While it is off, the account's client gets 503, and messages to it wait. A closed account
   * is on when it is opened again.
   */
  switchPhone(key: string, on: boolean): Promise<void>
  /** Unlinks the account's client, removes the account and erases its scope. An unknown key is not an error. */
  removeAccount(key: string): Promise<void>
  /** The phone removes its linked client. The client gets 401 device_removed, at its next login if it is offline. */
  unlink(phone: string): Promise<void>
  /**
   * A simulated contact writes to an account. Resolves with the message's WhatsApp ID once the network holds it
   * durably. The network then delivers it, even after a restart.
   */
  writeAs(message: ContactMessage): Promise<{ id: string }>
  /**
   * The owner of an account writes on the phone. Resolves with the message's WhatsApp ID once the network holds it durably.
   * Edits and deletions may also concern what the linked client sent.
   */
  writeAsOwner(message: OwnerMessage): Promise<{ id: string }>
  /**
   * A contact types. The client is notified only while it is connected, and has made itself available or subscribed to
   * the contact or group.
   */
  typeAs(typing: ContactTyping): Promise<void>
  /** A contact comes online or goes offline. Clients that have subscribed to it are notified. */
  setPresence(presence: ContactPresence): Promise<void>
  /** A contact calls an account. The call rings until the client rejects it or the contact hangs up. */
  callAs(call: ContactCall): Promise<{ id: string }>
  /** The contact hangs up. */
  endCall(id: string): Promise<void>
  /** The calls from and to this number, among the latest 1,000 of the network. */
  calls(number: string): Promise<readonly Call[]>
  /** A contact changes its picture, text or username. */
  setProfile(profile: ContactProfile): Promise<void>
  /** The profile of an account, or the profile of a contact as the account `viewer` sees it. */
  profile(number: string, viewer?: string): Promise<ShownProfile>
  /** Who types on the phone of this number, and whether the client of its account is available. */
  presence(number: string): Promise<PhonePresence>
  /** The owner of an account saves contacts on the phone. A name replaces the previous one. */
  saveContacts(phone: string, contacts: readonly SavedContact[]): Promise<void>
  /** Makes contacts and accounts members of a group. Every account in `numbers` sees the new members. */
  joinGroup(group: string, numbers: readonly string[]): Promise<void>
  /** A contact, or the owner of an account on the phone, creates a group. One of the members must have an account. */
  createGroup(by: string, subject: string, members: readonly string[]): Promise<{ group: string }>
  /** A person changes a group: its members, settings or invitation. @throws SimulatorError if WhatsApp refuses that */
  changeGroup(group: string, change: GroupChange): Promise<GroupState>
  /** The group as this account knows it. Default: an account in it. */
  group(group: string, account?: string): Promise<GroupState>
  /**
   * The messages that the phone of `number` (an account or a contact) has received, in order.
   * @param whole with the whole `message` of each
   */
  inbox(number: string, whole?: boolean): Promise<readonly ReceivedMessage[]>
  listAccounts(): Promise<readonly AccountInfo[]>
  /** Makes the network misbehave. @throws SimulatorError `invalid_argument`; `unknown_account` */
  misbehave(order: Order): Promise<OrderResult>
  /** The rules that are set and the stanzas that are held. */
  scenario(): Promise<ScenarioState>
  /** Closes every socket and the port. Durable state stays in the storage. */
  close(): Promise<void>
}
