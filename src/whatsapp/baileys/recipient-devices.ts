import {
  type BinaryNode,
  getBinaryNodeChild,
  isJidGroup,
  jidDecode,
  jidNormalizedUser,
  type PossiblyExtendedCacheStore,
  type proto,
  type WASocket,
} from 'baileys'
import type { GroupDetails } from '../../domain/recipients/group.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import { isSelf, lidOf, numberOf, type Self, userOf } from './addresses.ts'
import { stanzaAttributes } from './encode-content.ts'
import type { CredentialStore } from './signal/credential-store.ts'
import { assertAnswered, isUnanswered } from './signal/send-context.ts'

/*
 * Baileys writes to the devices that WhatsApp lists, with the keys that WhatsApp provides. If no device is listed, it
 * writes only to our own phone, and WhatsApp acknowledges that like any message. If a device has no keys, it may write to
 * no device at all.
 */

/** The device number of an account's phone. */
const PHONE = 0
/** Baileys' "All encryptions failed". A refusal by WhatsApp has WhatsApp's code in `data` instead. */
const NOT_ENCRYPTED = 500
/** WhatsApp renews tokens weekly (Baileys `tc-token-utils.js`). */
const WEEK_SECONDS = 604_800

/**
 * Baileys' default is 5 minutes, and each expiry costs a query and discards a working Signal session. WhatsApp notifies us
 * of changes, so a list can stay valid much longer. The week limits the effect of a missed notification.
 */
const FRESH_MS = 7 * 86_400_000
/** Longer than Baileys takes from the query for the devices to the message. */
const ASSUMED_MS = 60_000
/** A device without keys is left out for this time. It may have keys later. */
const LEFT_OUT_MS = 3_600_000
const MAX_LEFT_OUT = 4_000

interface Entry {
  at: number
  devices: unknown
  /** WhatsApp did not list them. */
  assumed?: boolean
}

/** The stored lists, in the credential store of the open socket. */
interface DeviceRows {
  read(type: 'devices', ids: readonly string[]): Promise<Map<string, unknown>>
  write(changes: readonly { type: 'devices'; id: string; value: unknown }[]): Promise<void>
}

/** The devices of each contact. The lists outlive the socket and the process. */
export class DeviceCache implements PossiblyExtendedCacheStore {
  /** When each device of a user may be written to again, in ms of the monotonic clock. */
  readonly #leftOut = new BoundedMap<string, Map<number, number>>(MAX_LEFT_OUT)
  /** The users whose lists are outdated. A list may still be stored if the link ended before it was deleted. */
  readonly #forgotten = new BoundedMap<string, true>(MAX_LEFT_OUT)
  readonly #now: () => number
  #rows: DeviceRows | null = null

  constructor(now: () => number) {
    this.#now = now
  }

  attach(rows: DeviceRows): void {
    this.#rows = rows
  }

  /**
   * For Baileys' changes of a list, which it stores: without a list that is assumed, which would look complete, and with the
   * devices that are left out.
   */
  async get<T>(user: string): Promise<T> {
    const entry = (await this.#findFresh([user])).get(user)
    // Baileys' type excludes a missing list, but its code allows for one.
    return (entry?.assumed ? undefined : entry?.devices) as T
  }

  /** For sending: without the devices that are left out. */
  async mget<T>(users: string[]): Promise<Record<string, T | undefined>> {
    const entries = await this.#findFresh(users)
    const now = performance.now()
    // The users come from WhatsApp, so an inherited property must not look like a list of devices.
    const found: Record<string, T | undefined> = Object.create(null)
    for (const [user, { devices }] of entries) {
      const leftOut = this.#leftOut.get(user)
      const reachable = Array.isArray(devices)
        ? devices.filter(({ device = PHONE }) => now >= (leftOut?.get(device) ?? 0))
        : devices
      found[user] = reachable as T
    }
    return found
  }

  async #findFresh(users: string[]): Promise<Map<string, Entry>> {
    const rows = await this.#rows?.read('devices', users)
    const fresh = new Map<string, Entry>()
    for (const user of users) {
      const entry = rows?.get(user) as Entry | undefined
      if (entry === undefined || this.#forgotten.get(user)) continue
      if (this.#now() - entry.at < FRESH_MS) fresh.set(user, entry)
    }
    return fresh
  }

  async set<T>(user: string, devices: T): Promise<void> {
    await this.mset([{ key: user, value: devices }])
  }

  /** Stores devices that WhatsApp has not listed. It is asked again soon. */
  async assume(user: string, devices: unknown): Promise<void> {
    const at = this.#now() - FRESH_MS + ASSUMED_MS
    await this.#rows?.write([{ type: 'devices', id: user, value: { at, devices, assumed: true } }])
    this.#forgotten.delete(user)
  }

  async mset<T>(lists: { key: string; value: T }[]): Promise<void> {
    const at = this.#now()
    await this.#rows?.write(
      lists.map(({ key, value }) => ({ type: 'devices', id: key, value: { at, devices: value } })),
    )
    for (const { key } of lists) this.#forgotten.delete(key)
  }

  async del(user: string): Promise<void> {
    this.#forgotten.set(user, true)
    this.#leftOut.delete(user)
    await this.#rows?.write([{ type: 'devices', id: user, value: null }])
  }

  leaveOut(user: string, device: number, forMs: number): void {
    const leftOut = this.#leftOut.get(user) ?? new Map<number, number>()
    this.#leftOut.set(user, leftOut.set(device, performance.now() + forMs))
  }

  /** Clears only the memory. A logout deletes the stored lists. */
  flushAll(): void {
    this.#leftOut.clear()
    this.#forgotten.clear()
  }
}

export interface Relay {
  socket: WASocket
  devices: DeviceCache
  self: Self
}

/**
 * Writes a message to the recipient's devices that have keys.
 * @throws Boom if no device has keys
 * @throws QueryUnanswered
 */
export async function relayToDevices(
  relay: Relay,
  address: string,
  content: proto.IMessage,
  whatsappId: string,
): Promise<void> {
  const additionalAttributes = stanzaAttributes(content)
  const write = () => relay.socket.relayMessage(address, content, { messageId: whatsappId, additionalAttributes })
  if (isJidGroup(address)) {
    await write().catch(error => {
      assertAnswered()
      if (!isNotEncrypted(error)) throw error
      // No device that still needs the group's key has keys. Baileys has noted them as having it, so this reaches the others.
      return write()
    })
    return
  }
  await ensureDevices(relay, address)
  await write().catch(async error => {
    assertAnswered()
    if (!isNotEncrypted(error) || !(await leaveOutUnreachable(relay, address))) throw error
    return write()
  })
}

/** Adds the recipient's phone to the cache for a short time if no device is listed. Call before Baileys sends a message. */
export async function ensureDevices(relay: Relay, address: string): Promise<void> {
  const { user, server } = jidDecode(address) ?? {}
  if (!user || (await relay.devices.mget<unknown[]>([user]))[user]?.length) return
  const { recipients } = await listDevices(relay, address)
  assertAnswered()
  if (recipients.length === 0) await relay.devices.assume(user, [{ user, server, device: PHONE }])
}

/** Forgets the devices of the person at this address, or of the members of this group. */
export async function forgetDevices(
  { devices, findGroup }: { devices: DeviceCache; findGroup(group: string): Promise<GroupDetails | null> },
  address: string,
  findLid: () => Promise<string | null>,
): Promise<void> {
  const people = isJidGroup(address)
    ? ((await findGroup(address))?.members ?? [])
    : [{ phone: userOf(address), lid: await findLid().catch(() => null) }]
  const users = people.flatMap(({ phone, lid }) => [phone, userOf(lid)])
  await Promise.all(users.map(user => user && devices.del(user)))
}

/**
 * Leaves out devices without keys for an hour, or briefly if WhatsApp has not answered and they may have keys.
 * @returns false if that would not help
 */
async function leaveOutUnreachable(relay: Relay, address: string): Promise<boolean> {
  const { all, recipients } = await listDevices(relay, address)
  const reached = new Set<string>()
  for (const { jid } of all) if ((await relay.socket.signalRepository.validateSession(jid)).exists) reached.add(jid)
  if (!recipients.some(({ jid }) => reached.has(jid))) return false
  const rest = all.filter(({ jid }) => !reached.has(jid))
  const forMs = isUnanswered() ? ASSUMED_MS : LEFT_OUT_MS
  for (const { user, device } of rest) relay.devices.leaveOut(user, device ?? PHONE, forMs)
  return rest.length > 0
}

/** Our own devices and the recipient's. The answer is cached for Baileys, which makes the same query next. */
async function listDevices({ socket, self }: Relay, address: string) {
  const own = jidNormalizedUser((lidOf(address) && self.lid) || self.id)
  const all = await socket.getUSyncDevices([own, address], true, false)
  const toSelf = isSelf(address, self)
  return { all, recipients: all.filter(({ jid }) => toSelf || !isSelf(jid, self)) }
}

function isNotEncrypted(error: unknown): boolean {
  const { output, data } = (error ?? {}) as { output?: { statusCode?: number }; data?: unknown }
  return output?.statusCode === NOT_ENCRYPTED && typeof data !== 'number'
}

/**
 * Removes devices without keys, and lists of devices with an error, from an answer. Baileys would treat one of them as a
 * refusal of the whole query.
 */
export function dropUnusable(frame: BinaryNode | Uint8Array): void {
  if (frame instanceof Uint8Array || frame.tag !== 'iq' || frame.attrs['type'] !== 'result') return
  // `getBinaryNodeChild` keeps an index of the content, so it must not read a node whose content changes.
  const [answer] = childrenOf(frame)
  if (answer?.tag === 'list') answer.content = childrenOf(answer).filter(one => one.tag !== 'user' || hasKeys(one))
  if (answer?.tag !== 'usync') return
  for (const user of childrenOf(answer).flatMap(childrenOf)) {
    if (Array.isArray(user.content))
      user.content = user.content.filter(one => one.tag !== 'devices' || !getBinaryNodeChild(one, 'error'))
  }
}

function hasKeys(user: BinaryNode): boolean {
  return ['identity', 'skey'].every(name => getBinaryNodeChild(user, name)) && !getBinaryNodeChild(user, 'error')
}

function childrenOf({ content }: BinaryNode): BinaryNode[] {
  return Array.isArray(content) ? content : []
}

/**
 * Records that the contact at this address has received a token from us. Baileys loses its own record, because it writes
 * to a transaction that has ended, and would send a token after every message.
 */
export async function noteToken(
  { signalRepository }: WASocket,
  { keys }: CredentialStore,
  address: string,
): Promise<void> {
  if (!numberOf(address) && !lidOf(address)) return
  const lid = lidOf(address) ? address : await signalRepository.lidMapping.getLIDForPN(address)
  const contact = jidNormalizedUser(lid ?? address)
  const seconds = Math.floor(Date.now() / 1_000)
  const row = (await keys.get('tctoken', [contact]))[contact]
  const week = (at: number) => Math.floor(at / WEEK_SECONDS)
  if (row?.senderTimestamp !== undefined && week(row.senderTimestamp) === week(seconds)) return
  await keys.set({ tctoken: { [contact]: { token: Buffer.alloc(0), ...row, senderTimestamp: seconds } } })
}
