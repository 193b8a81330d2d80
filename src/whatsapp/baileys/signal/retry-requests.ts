import { AsyncLocalStorage } from 'node:async_hooks'
import type { SignalKeyStoreWithTransaction, WASocket } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { RetryBudget } from './retry-budget.ts'

/** New pre-keys that a contact can use to encrypt a message again. Each stays stored until it is used. */
const KEYS_AT_ONCE = 256
const KEYS_EVERY_MS = 2_000
/** Requests to our own phone for a copy, if the sender does not answer. Each costs a message to the phone. */
const COPIES_AT_ONCE = 16
const COPIES_EVERY_MS = 10_000
/** Look-ups of messages that may be recorded already. */
const LOOK_UPS_AT_ONCE = 256
const LOOK_UPS_EVERY_MS = 100
/** Messages whose requests are counted. Baileys would count any number of them. */
const COUNTERS = 2_000

/** The budgets outlive a socket. @param now a monotonic clock in ms */
export function createRetryBudgets(now: () => number) {
  return {
    keys: new RetryBudget({ burst: KEYS_AT_ONCE, refillMs: KEYS_EVERY_MS, now }),
    lookUps: new RetryBudget({ burst: LOOK_UPS_AT_ONCE, refillMs: LOOK_UPS_EVERY_MS, now }),
    copies: new RetryBudget({ burst: COPIES_AT_ONCE, refillMs: COPIES_EVERY_MS, now }),
  }
}

export type RetryBudgets = ReturnType<typeof createRetryBudgets>

const resending = new AsyncLocalStorage<true>()

/** Marks sends that Baileys starts by itself: a message sent again, or a request to our own phone. */
export function asResend<T>(work: () => T): T {
  return resending.run(true, work)
}

/**
 * Prevents undecryptable messages from delaying others. Baileys requests them again in the account's transaction, for which
 * all messages wait, and keeps that transaction open during queries to WhatsApp. Here these sends have a transaction of their
 * own. Every message is requested, which costs less than to receive it. A contact can cause a limited number of new pre-keys,
 * and of requests to our phone.
 * @param onUndecryptable called for each message that cannot be decrypted
 */
export function boundRetryRequests(socket: WASocket, budgets: RetryBudgets, onUndecryptable: () => void): void {
  const { authState, messageRetryManager: manager, ws } = socket
  const transaction = authState.keys.transaction.bind(authState.keys)
  authState.keys.transaction = (work, key) => transaction(work, resending.getStore() ? `resend ${key}` : key)
  if (!manager) return
  ws.prependListener('CB:message', stanza => {
    for (const budget of Object.values(budgets)) budget.note(stanza)
  })
  Object.assign(manager, { retryCounters: new BoundedMap<string, number>(COUNTERS) })
  const hasExceeded = manager.hasExceededMaxRetries.bind(manager)
  // Baileys calls this once for each delivery that it cannot decrypt.
  manager.hasExceededMaxRetries = id => {
    onUndecryptable()
    return hasExceeded(id)
  }
  const increment = manager.incrementRetryCount.bind(manager)
  // From the second request for a message on, Baileys adds a pre-key. The first has none.
  manager.incrementRetryCount = id => {
    const count = increment(id)
    return count === 1 || budgets.keys.take(id) ? count : 1
  }
  const schedule = manager.schedulePhoneRequest.bind(manager)
  manager.schedulePhoneRequest = (id, request, delayMs) => {
    if (budgets.copies.take(id)) schedule(id, () => asResend(request), delayMs)
  }
}

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
