import { AsyncLocalStorage } from 'node:async_hooks'
import type { SignalKeyStoreWithTransaction } from 'baileys'

/**
 * Stores new pre-keys at once, outside of any transaction. When Baileys requests a message again, it sends a new pre-key
 * inside the transaction that stores the key. After a kill before the commit, a message encrypted with this pre-key could
 * not be decrypted. A stored pre-key that was not sent is harmless.
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
