import type { FastifyReply, FastifyRequest } from 'fastify'
import { unavailable } from '../../http/error-handler.ts'

/** A browser opens two in each tab. */
const MAX_PER_ACCOUNT = 40

/** Limits the open event streams of an account, which could otherwise occupy all requests that a node has open. */
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
