import {
  type BinaryNode,
  getBinaryNodeChild,
  isJidGroup,
  jidDecode,
  jidNormalizedUser,
  type proto,
  type WASocket,
} from 'baileys'
import { isSelf, lidOf, numberOf, type Self } from './addresses.ts'
import { stanzaAttributes } from './parsing/extended-content.ts'
import type { CredentialStore } from './signal/credential-store.ts'
import type { DeviceCache } from './signal/device-cache.ts'

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

export interface Relay {
  socket: WASocket
  devices: DeviceCache
  self: Self
}

/** Writes a message to the recipient's devices that have keys. @throws Boom if there are none */
export async function relayToDevices(
  relay: Relay,
  address: string,
  content: proto.IMessage,
  messageId: string,
): Promise<void> {
  const additionalAttributes = stanzaAttributes(content)
  const write = () => relay.socket.relayMessage(address, content, { messageId, additionalAttributes })
  if (isJidGroup(address)) {
    await write()
    return
  }
  const added = await ensureDevices(relay, address)
  try {
    await write().catch(async error => {
      if (!isNotEncrypted(error) || !(await leaveOutUnreachable(relay, address))) throw error
      return write()
    })
  } finally {
    if (added !== undefined) await relay.devices.del(added)
  }
}

/**
 * Adds the recipient's phone to the cache if no device is listed.
 * @returns the recipient's user if its phone was added. It must be removed after the message.
 */
async function ensureDevices(relay: Relay, address: string): Promise<string | undefined> {
  const { recipients } = await listDevices(relay, address)
  const { user, server } = jidDecode(address) ?? {}
  if (recipients.length > 0 || !user) return undefined
  await relay.devices.set(user, [{ user, server, device: PHONE }])
  return user
}

/** Leaves out devices without keys for an hour. @returns false if that would not help */
async function leaveOutUnreachable(relay: Relay, address: string): Promise<boolean> {
  const { all, recipients } = await listDevices(relay, address)
  const reached = new Set<string>()
  for (const { jid } of all) if ((await relay.socket.signalRepository.validateSession(jid)).exists) reached.add(jid)
  if (!recipients.some(({ jid }) => reached.has(jid))) return false
  const rest = all.filter(({ jid }) => !reached.has(jid))
  for (const { user, device } of rest) relay.devices.leaveOut(user, device ?? PHONE)
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

/** Removes devices without keys from an answer. Baileys would treat them as a refusal of all requested keys. */
export function dropKeyErrors({ tag, attrs, content }: BinaryNode): void {
  const [list] = tag === 'iq' && attrs['type'] === 'result' && Array.isArray(content) ? content : []
  if (list?.tag !== 'list' || !Array.isArray(list.content)) return
  list.content = list.content.filter(user => user.tag !== 'user' || !getBinaryNodeChild(user, 'error'))
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
