import { AsyncLocalStorage } from 'node:async_hooks'
import type { SignalKeyStoreWithTransaction } from 'baileys'

/**
 * New pre-keys are stored at once, outside of any transaction. Baileys sends a request for a message, with a new pre-key,
 * from within the transaction that stores the key: after a kill in between, nobody could decrypt what the sender
 * encrypts with it. A pre-key that is stored and not sent does no harm.
 */
export function storePreKeysFirst(keys: SignalKeyStoreWithTransaction): void {
  const set = keys.set.bind(keys)
  const outside = AsyncLocalStorage.snapshot()
  keys.set = data => {
    const { 'pre-key': preKeys, ...others } = data
    const areNew = preKeys !== undefined && Object.values(preKeys).every(key => key !== null)
    return areNew && Object.keys(others).length === 0 ? outside(() => set(data)) : set(data)
  }
}
