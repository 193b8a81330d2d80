import type { WASocket } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { RetryBudget } from './retry-budget.ts'
import { asResend } from './send-context.ts'

/** The limit on new pre-keys that a contact can use to encrypt a message again. Each stays stored until it is used. */
const KEYS_AT_ONCE = 256
const KEYS_EVERY_MS = 2_000
/** The limit on requests to our own phone for a copy, if the sender does not answer. Each costs the phone a message. */
const COPIES_AT_ONCE = 16
const COPIES_EVERY_MS = 10_000
/** The limit on database queries for messages that may be recorded already. */
const LOOK_UPS_AT_ONCE = 256
const LOOK_UPS_EVERY_MS = 100
/** Limits new logins after WhatsApp withheld kept messages. Without a new login, the instance can still send. */
const LOGINS_AT_ONCE = 2
const LOGINS_EVERY_MS = 3_600_000
/** The number of messages whose requests are counted. Baileys would count any number of messages. */
const COUNTERS = 2_000

/** The budgets outlive a socket. @param now a monotonic clock in ms */
export function createRetryBudgets(now: () => number) {
  return {
    keys: new RetryBudget({ burst: KEYS_AT_ONCE, refillMs: KEYS_EVERY_MS, now }),
    lookUps: new RetryBudget({ burst: LOOK_UPS_AT_ONCE, refillMs: LOOK_UPS_EVERY_MS, now }),
    copies: new RetryBudget({ burst: COPIES_AT_ONCE, refillMs: COPIES_EVERY_MS, now }),
    logins: new RetryBudget({ burst: LOGINS_AT_ONCE, refillMs: LOGINS_EVERY_MS, now }),
  }
}

export type RetryBudgets = ReturnType<typeof createRetryBudgets>

/**
 * Limits the cost of undecryptable messages. Each is requested again, which costs less than receiving it. A contact
 * can cause only a limited number of new pre-keys, and of requests to our phone.
 * @param onUndecryptable called for each message that cannot be decrypted
 */
export function boundRetryRequests(socket: WASocket, budgets: RetryBudgets, onUndecryptable: () => void): void {
  const { messageRetryManager: manager, ws } = socket
  if (!manager) return
  ws.prependListener('CB:message', stanza => {
    for (const budget of [budgets.keys, budgets.lookUps, budgets.copies]) budget.note(stanza)
  })
  Object.assign(manager, { retryCounters: new BoundedMap<string, number>(COUNTERS) })
  const hasExceeded = manager.hasExceededMaxRetries.bind(manager)
  // Baileys calls this once for each delivery that it cannot decrypt.
  manager.hasExceededMaxRetries = id => {
    onUndecryptable()
    return hasExceeded(id)
  }
  const increment = manager.incrementRetryCount.bind(manager)
  // Baileys adds a pre-key from the second request for a message on. A count of 1 adds none.
  manager.incrementRetryCount = id => {
    const count = increment(id)
    return count === 1 || budgets.keys.take(id) ? count : 1
  }
  const schedule = manager.schedulePhoneRequest.bind(manager)
  manager.schedulePhoneRequest = (id, request, delayMs) => {
    if (budgets.copies.take(id)) schedule(id, () => asResend(request), delayMs)
  }
}
