import { setTimeout as sleep } from 'node:timers/promises'
import { S_WHATSAPP_NET, type WASocket } from 'baileys'

const MAX_REQUESTS = 3

/**
 * Requests the messages and receipts that WhatsApp holds for us, at most three times, until it has delivered them all.
 * Baileys sends this request only once, and not at all if an earlier query was not answered. Without the request,
 * WhatsApp delivers nothing.
 * @param waitMs the time before each request
 * @param isDone true once WhatsApp has delivered everything
 */
export async function requestPendingMessages(
  { query, ev }: WASocket,
  waitMs: number,
  isDone: () => boolean,
  closed: AbortSignal,
): Promise<void> {
  for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
    await sleep(waitMs, undefined, { signal: closed, ref: false })
    if (isDone()) return
    const attrs = { to: S_WHATSAPP_NET, type: 'set', xmlns: 'passive' }
    await query({ tag: 'iq', attrs, content: [{ tag: 'active', attrs: {} }] }).catch(() => undefined)
    ev.flush()
  }
}
