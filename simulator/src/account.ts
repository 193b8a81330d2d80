import { randomBytes } from 'node:crypto'
import { AppState } from './app-state/app-state.ts'
import type { Group } from './contacts/group-types.ts'
import { groupOf, isAdminOf } from './contacts/groups.ts'
import { AccountPasskey } from './passkey/account-passkey.ts'
import { Settings } from './profiles/settings.ts'
import { Inboxes } from './server/inbox.ts'
import { Records } from './signal/records.ts'
import type { KeyBundle, PreKey, SignedPreKey } from './signal/signal-device.ts'
import { SimulatedDevices } from './signal/simulated-devices.ts'
import { type NetworkStorage, SimulatorError } from './types.ts'
import type { Node } from './wire/nodes.ts'
import { StanzaQueue } from './wire/stanza-queue.ts'

/** The linked client of an account, as the network sees it. */
export interface Companion {
  /** From 1; a client linked later gets a number never used before. */
  device: number
  /** Identifies its logins. */
  noiseKey: Buffer
  identity: Buffer
  registrationId: number
  signedPreKey: SignedPreKey
  /** True once the phone has sent it the history. */
  synced?: boolean
}

/** The connection that the linked client is logged in on. */
export interface Client {
  /** No two logins have the same number. */
  readonly login: number
  readonly device: number
  /** The WhatsApp Web version that it states at login. */
  readonly version: string
  /** True once it has received the stanzas queued for it. From then on stanzas are sent immediately. */
  readonly caughtUp: boolean
  /** True while it is marked as available, as a client is when its user looks at it. */
  isAvailable: boolean
  /** Sends the next stanzas that were queued for it. Null unless it has to request them. */
  sendBatch: ((count: number) => void) | null
  /** By number or group whose presence it has subscribed to: the JID that it named. */
  readonly subscriptions: Map<string, string>
  send(stanza: Node): void
  /** Sends a last stanza and closes the connection. */
  end(stanza: Node): void
  /** Ends the connection without sending anything. */
  cut(): void
}

/** An action that runs once an event's changes are durable: an acknowledgement, an answer, a delivery. */
export type Effect = () => void

const SECRET_BYTES = 32
/** Makes one event's changes. The effects it returns run once the changes are durable. */
export type Event = () => Promise<Effect[] | undefined> | Effect[] | undefined

/** A phone without a name is called by the last digits of its number. */
const NAME_DIGITS = 4
const MAX_RETRIES_COUNTED = 1000

/**
 * One account: its phone, its linked client, and the contacts as this account sees them. One scope of the storage holds
 * all of its state.
 *
 * Every change goes through `apply`. It runs one event at a time and writes each event's changes atomically. An event's
 * effects run in order, once its changes are durable. If the storage fails, the effects do not run.
 */
export class Account {
  readonly key: string
  readonly phone: string
  /** The push name that others see. */
  name: string | undefined
  companion: Companion | null = null
  client: Client | null = null
  /** While the phone is switched off, its client cannot log in. Kept in memory only. */
  isOff = false
  readonly queue: StanzaQueue
  readonly inboxes: Inboxes
  readonly appState: AppState
  readonly settings: Settings
  readonly passkey: AccountPasskey
  readonly devices: SimulatedDevices
  readonly preKeys = new Map<number, Buffer>()
  readonly contactNames = new Map<string, string>()
  /** Groups that a client has created, including those that this account has left. */
  readonly createdGroups = new Map<string, Group>()
  /** All groups that clients and contacts of the network have created. All accounts of a network have the same set. */
  networkGroups = new Set<string>()
  /** Members of a group beyond the default ones. */
  readonly groupMembers = new Map<string, string[]>()
  /** Which of our devices has which contact's sender key: `number/group` to device. */
  readonly senderKeysKnown = new Map<string, number>()
  /** How often a phone has asked for a message again: `number/id` to count. Kept in memory only. */
  readonly #retries = new Map<string, number>()
  readonly #records: Records
  readonly #secret: Buffer
  #lastDevice: number
  #lane: Promise<unknown> = Promise.resolve()
  #closed = false

  private constructor(key: string, records: Records, stored: StoredAccount) {
    this.key = key
    this.phone = stored.phone
    this.name = stored.name
    this.#secret = Buffer.from(stored.secret, 'base64')
    this.#lastDevice = stored.lastDevice
    this.#records = records
    this.queue = new StanzaQueue(records)
    this.inboxes = new Inboxes(records, (group, number) => isAdminOf(groupOf(this, group), number))
    this.appState = new AppState(records)
    this.settings = new Settings(records)
    this.passkey = new AccountPasskey(records)
    this.devices = new SimulatedDevices(this.#secret, records)
  }

  /** Reads the account from its scope; null if there is none. */
  static async load(key: string, storage: NetworkStorage | null): Promise<Account | null> {
    const records = new Records(storage, key)
    const stored = await records.load()
    const own = stored.get('account')
    if (own === undefined) return null
    const account = new Account(key, records, JSON.parse(own))
    for (const name of [...stored.keys()].sort()) account.#restore(name, stored.get(name)!)
    return account
  }

  static async create(key: string, phone: string, storage: NetworkStorage | null): Promise<Account> {
    const secret = randomBytes(SECRET_BYTES).toString('base64')
    const name = `Phone ${phone.slice(-NAME_DIGITS)}`
    const account = new Account(key, new Records(storage, key), { phone, name, secret, lastDevice: 0 })
    await account.applyDurably(() => {
      account.#recordOwn()
    })
    return account
  }

  /**
   * Runs one event after the earlier ones. Resolves when the event has ended, or rejects with its error. `durable`
   * settles when its changes are written and its effects have run.
   */
  apply(event: Event): Promise<{ durable: Promise<void> }> {
    if (this.#closed) return Promise.reject(new SimulatorError('closed', `the account ${this.key} is closed`))
    const ended = this.#lane.then(async () => {
      let effects: Effect[] | undefined
      try {
        effects = await event()
      } finally {
        this.#records.seal()
      }
      const durable = this.#records.commit().then(() => {
        for (const effect of effects ?? []) effect()
      })
      durable.catch(() => undefined)
      return { durable }
    })
    this.#lane = ended.catch(() => undefined)
    return ended
  }

  /** Like {@link apply}, but also waits for the effects. */
  async applyDurably(event: Event): Promise<void> {
    await (await this.apply(event)).durable
  }

  /** Refuses further events. Resolves once the last write has ended; the scope does not change after that. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#lane
    await this.#records.commit()
  }

  async erase(): Promise<void> {
    await this.close()
    for (const key of (await this.#records.load()).keys()) this.#records.drop(key)
    this.#records.seal()
    await this.#records.commit()
  }

  /**
   * True if the phone of `number`, hosted here, has a session with the client of `other`: one wrote and the other read.
   */
  hasTalked(number: string, { phone, companion }: Account): boolean {
    return this.devices.hasSession(number, phone, companion?.device)
  }

  /** Gives the contact's phone new keys, no sessions and no sender keys. */
  changeIdentity(number: string): void {
    this.devices.changeIdentity(number)
    for (const key of this.senderKeysKnown.keys()) {
      if (!key.startsWith(`${number}/`)) continue
      this.senderKeysKnown.delete(key)
      this.#records.drop(`known/${key}`)
    }
  }

  /** Counts one more request of `number` for this message and returns the total, from 1. */
  countRetry(number: string, id: string): number {
    const key = `${number}/${id}`
    const count = (this.#retries.get(key) ?? 0) + 1
    this.#retries.set(key, count)
    if (this.#retries.size > MAX_RETRIES_COUNTED) this.#retries.delete(this.#retries.keys().next().value!)
    return count
  }

  /** How often the phone of `number` has asked for this message again. */
  retriesOf(number: string, id: string): number {
    return this.#retries.get(`${number}/${id}`) ?? 0
  }

  setName(name: string): undefined {
    if (name === this.name) return
    this.name = name
    this.#recordOwn()
  }

  setContactName(number: string, name: string): void {
    if (this.contactNames.get(number) === name) return
    this.contactNames.set(number, name)
    this.#records.put(`contact/${number}`, () => JSON.stringify({ name }))
  }

  addGroupMember(group: string, number: string): void {
    const members = [...(this.groupMembers.get(group) ?? []), number]
    this.groupMembers.set(group, members)
    this.#records.put(`group/${group}`, () => JSON.stringify({ members }))
  }

  setCreatedGroup(jid: string, group: Group): void {
    this.createdGroups.set(jid, group)
    if (!group.isDefault) this.networkGroups.add(jid)
    this.#records.put(`made/${jid}`, () => JSON.stringify(group))
  }

  setSenderKeyKnown(number: string, group: string): void {
    const device = this.companion?.device ?? 0
    this.senderKeysKnown.set(`${number}/${group}`, device)
    this.#records.put(`known/${number}/${group}`, () => JSON.stringify({ device }))
  }

  nextDevice(): number {
    this.#lastDevice++
    this.#recordOwn()
    return this.#lastDevice
  }

  link(companion: Companion): void {
    this.unlink()
    this.companion = companion
    this.#recordCompanion()
  }

  markSynced(): void {
    if (this.companion) this.companion.synced = true
    this.#recordCompanion()
  }

  /** Forgets the linked client and everything queued for it. */
  unlink(): void {
    if (!this.companion) return
    this.devices.dropSessions(this.phone, this.companion.device)
    this.queue.clear()
    for (const id of this.preKeys.keys()) this.#records.drop(`prekey/${id}`)
    this.preKeys.clear()
    for (const key of this.senderKeysKnown.keys()) this.#records.drop(`known/${key}`)
    this.senderKeysKnown.clear()
    this.companion = null
    this.#records.drop('companion')
  }

  addPreKeys(keys: readonly PreKey[]): void {
    for (const { id, publicKey } of keys) {
      this.preKeys.set(id, publicKey)
      this.#records.put(`prekey/${id}`, () => JSON.stringify(publicKey.toString('base64')))
    }
  }

  replaceSignedPreKey(signedPreKey: SignedPreKey): void {
    if (!this.companion) return
    this.companion.signedPreKey = signedPreKey
    this.#recordCompanion()
  }

  /** The keys to open a session with the linked client. Each one-time key is given out once. */
  takeBundle(): KeyBundle | null {
    if (!this.companion) return null
    const { registrationId, identity, signedPreKey } = this.companion
    const [first] = this.preKeys
    if (!first) return { registrationId, identity, signedPreKey }
    const [id, publicKey] = first
    this.preKeys.delete(id)
    this.#records.drop(`prekey/${id}`)
    return { registrationId, identity, signedPreKey, preKey: { id, publicKey } }
  }

  #recordOwn(): void {
    const stored: StoredAccount = {
      phone: this.phone,
      secret: this.#secret.toString('base64'),
      lastDevice: this.#lastDevice,
      ...(this.name !== undefined && { name: this.name }),
    }
    this.#records.put('account', () => JSON.stringify(stored))
  }

  #recordCompanion(): void {
    this.#records.put('companion', () => JSON.stringify(this.companion))
  }

  #restore(key: string, text: string): void {
    const [kind, ...rest] = key.split('/')
    const name = rest.join('/')
    if (kind === 'companion') this.companion = JSON.parse(text, reviveBytes)
    else if (kind === 'queue') this.queue.restore(Number(name), text)
    else if (kind === 'inbox') this.inboxes.restore(key, text)
    else if (kind === 'appstate') this.appState.restore(key, text)
    else if (kind === 'settings') this.settings.restore(text)
    else if (kind === 'passkey') this.passkey.restore(text)
    else if (kind === 'signal') this.devices.restoreSignal(name, text)
    else if (kind === 'prekey') this.preKeys.set(Number(name), Buffer.from(JSON.parse(text), 'base64'))
    else if (kind === 'contact') this.contactNames.set(name, JSON.parse(text).name)
    else if (kind === 'group') this.groupMembers.set(name, JSON.parse(text).members)
    else if (kind === 'made') this.createdGroups.set(name, JSON.parse(text))
    else if (kind === 'changed') this.devices.restoreContact(name, text)
    else if (kind === 'known') this.senderKeysKnown.set(name, JSON.parse(text).device)
  }
}

interface StoredAccount {
  phone: string
  secret: string
  lastDevice: number
  name?: string
}

/** Restores the Buffers that JSON has encoded. */
function reviveBytes(_key: string, value: unknown): unknown {
  const data = value as { type?: unknown; data?: unknown } | null
  return data && data.type === 'Buffer' && Array.isArray(data.data) ? Buffer.from(data.data as number[]) : value
}
