import { AsyncLocalStorage } from 'node:async_hooks'
import type { WASocket } from 'baileys'
import { RetryBudget } from './retry-budget.ts'

/** A contact whose session with us broke while we were away may have written that much. */
const ASKED_AT_ONCE = 256
const ASKED_EVERY_MS = 2_000
/** Our own phone is asked for a copy where the sender does not answer; each costs a message to the phone. */
const COPIES_AT_ONCE = 16
const COPIES_EVERY_MS = 10_000

export interface RetryBudgets {
  requests: RetryBudget
  copies: RetryBudget
}

/** They outlive a socket. @param now moments in ms that never go back */
export function createRetryBudgets(now: () => number): RetryBudgets {
  return {
    requests: new RetryBudget({ burst: ASKED_AT_ONCE, refillMs: ASKED_EVERY_MS, now }),
    copies: new RetryBudget({ burst: COPIES_AT_ONCE, refillMs: COPIES_EVERY_MS, now }),
  }
}

const resending = new AsyncLocalStorage<true>()

/** Marks what Baileys sends by itself: a message again, or a question to our own phone. */
export function asResend<T>(work: () => T): T {
  return resending.run(true, work)
}

/**
 * Keeps messages that cannot be decrypted from delaying others. Baileys asks for them while all messages wait, in a
 * transaction of the account; what it sends by itself takes the same one and holds it over queries to WhatsApp.
 * Here that has a transaction of its own, and a contact causes a bounded number of requests.
 */
export function boundRetryRequests(socket: WASocket, { requests, copies }: RetryBudgets): void {
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
  manager.hasExceededMaxRetries = id => hasExceeded(id) || !requests.take(id)
  const schedule = manager.schedulePhoneRequest.bind(manager)
  manager.schedulePhoneRequest = (id, ask, delayMs) => {
    if (copies.take(id)) schedule(id, () => asResend(ask), delayMs)
  }
}
