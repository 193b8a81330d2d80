import { AsyncLocalStorage } from 'node:async_hooks'
import type { SignalKeyStoreWithTransaction } from 'baileys'

/**
 * The context of a send. `recorded` settles once the message is recorded as prepared. Code that a send triggers later inherits
 * the context, even on another link after the socket has ended. `link` distinguishes it.
 */
interface Send {
  link: object
  recorded: Promise<void>
  /** What the frame of the message waits for, once the message is encrypted; null once the frame has taken it. */
  ready?: Promise<unknown> | null
}

export const sending = new AsyncLocalStorage<Send>()

type Settled = () => Promise<void>

/**
 * Makes Baileys wait until the message is recorded as prepared: after it has encrypted the message for each device, and
 * before it encrypts the frame. If recording fails, the send fails here. Later the link would have to end: frames are
 * numbered, so none that is encrypted may be left out. Baileys has no hook at that point, but uses one of two keys there: for a group
 * it writes the list of devices that have the sender key, for a contact it reads the privacy token.
 * @param settled resolves when all changes so far are durable
 */
export function waitUntilRecorded(keys: SignalKeyStoreWithTransaction, link: object, settled: Settled): void {
  const get = keys.get.bind(keys)
  const set = keys.set.bind(keys)
  const wait = async () => {
    const send = sending.getStore()
    if (send?.link !== link || send.ready !== undefined) return
    send.ready = Promise.all([send.recorded, settled()])
    await send.ready
  }
  keys.get = (type, ids) => (type === 'tctoken' ? wait().then(() => get(type, ids)) : get(type, ids))
  keys.set = data => ('sender-key-memory' in data ? wait().then(() => set(data)) : set(data))
}

/** What the next frame must wait for. */
export function untilDurable(link: object, settled: Settled): Promise<unknown> {
  const send = sending.getStore()
  if (send?.link !== link) return settled()
  const { ready } = send
  if (!ready) return Promise.all([send.recorded, settled()])
  // Only the frame of the message: later ones may depend on later changes.
  send.ready = null
  return ready
}
