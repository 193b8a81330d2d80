import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { IncomingCall } from '../../domain/connection/incoming-call.ts'
import { newMessageId, newWhatsappId } from '../../domain/ids.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'

/** An older call has ended, and a text would come as a surprise. */
const ANSWERED_WITHIN_MS = 5 * 60_000
/** A caller who tries again and again gets one text in each period of this length. */
const TEXT_EVERY_MS = 60 * 60_000
const PAUSE_MS = 200

export interface AnsweringOptions {
  lease: Lease
  store: Pick<Store, 'connections' | 'messages'>
  logger: Logger
  now: () => number
}

/**
 * Queues the configured text, if any, for the person who called. WhatsApp delivers a phone call again until it is
 * acknowledged, so the text has an idempotency key.
 * @param closed aborted when the link that carried the call closes
 * @returns whether the call is to be rejected
 */
export async function answerCall(options: AnsweringOptions, call: IncomingCall, closed: AbortSignal): Promise<boolean> {
  const { lease, store, logger, now } = options
  const { instanceId } = lease
  const record = await untilStored(() => store.connections.find(instanceId), closed)
  if (!record?.calls.reject || now() - call.at > ANSWERED_WITHIN_MS) return false
  const { text } = record.calls
  if (text !== null && !call.isGroup) await queueText(options, call, text, closed)
  logger.info({ instanceId, callId: call.id }, 'call.rejected')
  return true
}

async function queueText(
  { lease, store, logger, now }: AnsweringOptions,
  { id: callId, from: to, at }: IncomingCall,
  text: string,
  closed: AbortSignal,
): Promise<void> {
  if (parseRecipient(to) === null) return
  const { instanceId } = lease
  const digest = hash('sha256', JSON.stringify([to, text]), 'buffer')
  // The key contains a space, which keys from the API cannot contain.
  const key = `call ${Math.floor(at / TEXT_EVERY_MS)} ${digest.toString('base64url')}`
  const message = { instanceId, id: newMessageId(now()), whatsappId: newWhatsappId(), to, text }
  const accept = () => store.messages.accept({ ...message, idempotency: { key, digest } }, now())
  for (;;) {
    const outcome = await untilStored(accept, closed)
    // At a login, calls may arrive before the connection is recorded as open.
    const isEarly = outcome.kind === 'not_connected' && now() - at <= ANSWERED_WITHIN_MS
    if (!isEarly) {
      const messageId = outcome.kind === 'accepted' || outcome.kind === 'replayed' ? outcome.id : undefined
      logger.info({ instanceId, callId, messageId, outcome: outcome.kind }, 'call.text_queued')
      return
    }
    await sleep(PAUSE_MS, undefined, { signal: closed })
  }
}
