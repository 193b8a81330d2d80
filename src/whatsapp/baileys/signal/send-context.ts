import { AsyncLocalStorage } from 'node:async_hooks'
import { isJidGroup, type SignalKeyStoreWithTransaction } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { VERSION, type VersionWatch } from '../link/contacts.ts'
import type { CredentialStore } from './credential-store.ts'

/**
 * The context of a send. Code that a send triggers later inherits the context, even on another link after the socket
 * has ended. `link` shows whether the context applies.
 */
interface Send {
  link: object
  address: string
  /** Records the message as prepared. Called at most once. Resolves when that is durable. */
  record(): Promise<void>
  /** Absent until the message is encrypted. Then resolves when its frame may leave; `taken` once the frame waits for that. */
  ready?: Promise<unknown> | 'taken'
  /** WhatsApp has not answered a query for devices or keys. */
  unanswered?: true
}

export const sending = new AsyncLocalStorage<Send>()

/** WhatsApp did not answer a query, so it is not known which devices must get the message. */
class QueryUnanswered extends Error {
  override readonly name = 'QueryUnanswered'
}

/** Call in the context of a send whose query WhatsApp has not answered. Baileys then goes on as if there were no devices. */
export function noteUnanswered(): void {
  const send = sending.getStore()
  if (send) send.unanswered = true
}

/** True if WhatsApp has not answered a query of this send. */
export function isUnanswered(): boolean {
  return sending.getStore()?.unanswered === true
}

const MAX_UNANSWERED = 1_000
/** By link: the people whose messages an unanswered query has delayed. */
const unanswered = new WeakMap<object, BoundedMap<string, true>>()

/**
 * @throws QueryUnanswered if WhatsApp has not answered a query of this send. Never twice in a row for one person over one link: if WhatsApp
 * never answers such queries, the message goes to the devices that are known or assumed. For a group none can be assumed.
 */
export function assertAnswered(): void {
  const send = sending.getStore()
  if (!send?.unanswered) return
  if (isJidGroup(send.address)) throw new QueryUnanswered()
  const known = unanswered.get(send.link) ?? new BoundedMap<string, true>(MAX_UNANSWERED)
  unanswered.set(send.link, known)
  if (known.get(send.address)) return
  known.set(send.address, true)
  throw new QueryUnanswered()
}

type Changes = Pick<CredentialStore, 'settled' | 'idle'>

const resending = new AsyncLocalStorage<true>()

/** Marks sends that Baileys starts by itself: a message sent again, or a request to our own phone. */
export function asResend<T>(work: () => T): T {
  return resending.run(true, work)
}

/**
 * Changes how Baileys' sends use the keys:
 *
 * - The message is recorded as prepared after Baileys has encrypted it for each device, and before Baileys encrypts the
 *   frame. If recording fails, the send fails. A later failure would have to end the link: frames are numbered, so no
 *   encrypted frame may be left out. Baileys has no hook at that point, but it uses one of two keys there: for a group
 *   it writes the list of devices that have the sender key, for a contact it reads the privacy token. The record begins
 *   together with the commit of the keys that the encryption has changed, so one commit can contain both.
 * - New pre-keys are stored immediately, outside of any transaction. When Baileys requests a message again, it sends a
 *   new pre-key inside the transaction that stores the key. After a kill before the commit, a message encrypted with
 *   this pre-key could not be decrypted. A stored pre-key that was not sent is harmless.
 * - Each message that Baileys sends by itself has a transaction of its own, so an undecryptable message does not delay
 *   others. Baileys would use the account's transaction, for which all messages wait, and keep it open during queries
 *   to WhatsApp.
 * - `versions` watches the account's settings.
 */
export function adaptKeys(
  keys: SignalKeyStoreWithTransaction,
  link: object,
  changes: Changes,
  versions: VersionWatch,
): void {
  const get = keys.get.bind(keys)
  const set = keys.set.bind(keys)
  const transaction = keys.transaction.bind(keys)
  const outside = AsyncLocalStorage.snapshot()
  const untilRecorded = async () => {
    const send = sending.getStore()
    if (send?.link !== link || send.ready !== undefined) return
    assertAnswered()
    if (!send.unanswered) unanswered.get(link)?.delete(send.address)
    send.ready = Promise.all([changes.settled(), changes.idle().then(send.record)])
    await send.ready
  }
  keys.get = async (type, ids) => {
    if (type === 'tctoken') await untilRecorded()
    if (type === VERSION) versions.countReads(ids)
    return get(type, ids)
  }
  keys.set = async data => {
    if ('sender-key-memory' in data) await untilRecorded()
    if (data[VERSION]) await versions.beforeWrite(data[VERSION])
    const { 'pre-key': preKeys, ...others } = data
    const areNew = preKeys !== undefined && Object.values(preKeys).every(key => key !== null)
    return areNew && Object.keys(others).length === 0 ? outside(() => set(data)) : set(data)
  }
  keys.transaction = (work, key) =>
    versions.inTransaction(() => transaction(work, resending.getStore() ? `resend ${key}` : key))
}

/**
 * Resolves when the changes that the next frame depends on are durable. Call once for each frame. Frames leave in their
 * order, so later frames of a send follow the frame that waited for its record.
 */
export function untilDurable(link: object, changes: Changes): Promise<unknown> {
  const send = sending.getStore()
  // `ready` is absent during queries for devices or keys: the hooks of `adaptKeys` set it just before the message's frame. If a
  // query waited for the record of a cancelled message, the record would fail and end the link.
  if (send?.link !== link || send.ready === undefined || send.ready === 'taken') return changes.settled()
  const { ready } = send
  // Only the frame of the message waits for `ready`, because later frames may depend on later changes.
  send.ready = 'taken'
  return ready
}
