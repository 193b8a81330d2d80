import type { FastifyReply, FastifyRequest } from 'fastify'
import { unavailable } from '../../http/error-handler.ts'

/** A browser opens two in each tab. */
const MAX_PER_ACCOUNT = 40

/**
 * Limits the open event streams of one kind of an account, which could otherwise use up the account's whole share of
 * open requests.
 */
export class AccountStreams {
  readonly #open = new Map<string, number>()

  /** The stream counts until the answer closes. @throws Refusal beyond the limit, and if it is closed already */
  admit({ account }: FastifyRequest, { raw }: FastifyReply): void {
    if (account === null) return
    const count = this.#open.get(account.id) ?? 0
    if (raw.closed || count >= MAX_PER_ACCOUNT) throw unavailable()
    this.#open.set(account.id, count + 1)
    raw.once('close', () => {
      const left = this.#open.get(account.id)! - 1
      if (left === 0) this.#open.delete(account.id)
      else this.#open.set(account.id, left)
    })
  }
}
