import { AsyncLocalStorage } from 'node:async_hooks'
import type { WASocket } from 'baileys'
import { RetryBudget } from './retry-budget.ts'

/** A contact whose session broke while we were offline may have sent this many messages. */
const REQUESTS_AT_ONCE = 256
const REQUESTS_EVERY_MS = 2_000
/** Requests to our own phone for a copy, if the sender does not answer. Each costs a message to the phone. */
const COPIES_AT_ONCE = 16
const COPIES_EVERY_MS = 10_000

/** The budgets outlive a socket. @param now a monotonic clock in ms */
export function createRetryBudgets(now: () => number) {
  return {
    requests: new RetryBudget({ burst: REQUESTS_AT_ONCE, refillMs: REQUESTS_EVERY_MS, now }),
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
 * own, and each contact can cause only a limited number of requests.
 * @param onUndecryptable called for each message that cannot be decrypted, also if it is not requested
 */
export function boundRetryRequests(
  socket: WASocket,
  { requests, copies }: RetryBudgets,
  onUndecryptable: () => void,
): void {
  const { authState, messageRetryManager: manager, ws } = socket
  const { keys } = authState
  const transaction = keys.transaction.bind(keys)
  keys.transaction = (work, key) => transaction(work, resending.getStore() ? `resend ${key}` : key)
  if (!manager) return
  ws.prependListener('CB:message', stanza => {
    requests.note(stanza)
    copies.note(stanza)
  })
  const hasExceeded = manager.hasExceededMaxRetries.bind(manager)
  // Baileys calls this once for each delivery that it cannot decrypt.
  manager.hasExceededMaxRetries = id => {
    onUndecryptable()
    return hasExceeded(id) || !requests.take(id)
  }
  const schedule = manager.schedulePhoneRequest.bind(manager)
  manager.schedulePhoneRequest = (id, request, delayMs) => {
    if (copies.take(id)) schedule(id, () => asResend(request), delayMs)
  }
}
