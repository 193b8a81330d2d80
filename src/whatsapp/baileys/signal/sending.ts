import { AsyncLocalStorage } from 'node:async_hooks'
import type { SignalKeyStoreWithTransaction } from 'baileys'
import type { CredentialStore } from './credential-store.ts'

/**
 * The context of a send. Code that a send triggers later inherits it, even on another link after the socket has ended. `link`
 * distinguishes it.
 */
interface Send {
  link: object
  /** Records the message as prepared. Resolves when that is durable. */
  record(): Promise<void>
  /** What the frame of the message waits for, once the message is encrypted; null once the frame has taken it. */
  ready?: Promise<unknown> | null
}

export const sending = new AsyncLocalStorage<Send>()

type Changes = Pick<CredentialStore, 'settled' | 'idle'>

/**
 * Makes Baileys record the message as prepared, and wait for that: after it has encrypted the message for each device, and
 * before it encrypts the frame. If recording fails, the send fails here. Later the link would have to end: frames are
 * numbered, so none that is encrypted may be left out. Baileys has no hook at that point, but uses one of two keys there: for a group
 * it writes the list of devices that have the sender key, for a contact it reads the privacy token.
 *
 * The record begins together with the commit of the keys that the encryption has changed, so that one commit takes both.
 */
export function waitUntilRecorded(keys: SignalKeyStoreWithTransaction, link: object, changes: Changes): void {
  const get = keys.get.bind(keys)
  const set = keys.set.bind(keys)
  const wait = async () => {
    const send = sending.getStore()
    if (send?.link !== link || send.ready !== undefined) return
    send.ready = Promise.all([changes.settled(), changes.idle().then(send.record)])
    await send.ready
  }
  keys.get = (type, ids) => (type === 'tctoken' ? wait().then(() => get(type, ids)) : get(type, ids))
  keys.set = data => ('sender-key-memory' in data ? wait().then(() => set(data)) : set(data))
}

/** What the next frame must wait for. */
export function untilDurable(link: object, changes: Changes): Promise<unknown> {
  const send = sending.getStore()
  if (send?.link !== link) return changes.settled()
  const { ready } = send
  if (!ready) return Promise.all([changes.settled(), send.record()])
  // Only the frame of the message: later ones may depend on later changes.
  send.ready = null
  return ready
}
