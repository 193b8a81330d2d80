import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { InstanceId, MessageId } from '../domain/ids.ts'
import { newMessageId, newWhatsappId } from '../domain/ids.ts'
import { Refusal, type RefusalCode } from '../domain/refusal.ts'
import { parseTraceparent } from '../domain/trace-context.ts'
import type { NewMessage } from '../store/messages/messages.ts'
import type { ApiContext } from './context.ts'
import { checkRecipient, checkText } from './input.ts'
import { deletedMeanwhile, refuseBesideOldNodes } from './refusals.ts'

const PENDING_RETRY_AFTER_SECONDS = 2
/** The refusals of a call that accepts a message. */
export const MESSAGE_REFUSALS: readonly RefusalCode[] = [
  'invalid_request',
  'invalid_phone_number',
  'quote_not_found',
  'media_not_found',
  'media_pending',
  'media_unsupported',
  'instance_not_connected',
  'idempotency_key_reused',
  'media_not_configured',
]
const WHY_UNSUPPORTED = {
  form: undefined,
  caption: 'WhatsApp shows a caption only with an image, a video or a document.',
  preview: 'The image of a preview must be JPEG, PNG, WebP or GIF.',
} as const

type Content = Pick<NewMessage, 'to' | 'text' | 'file' | 'extras' | 'notBefore'>

/** Validates a message and assigns its IDs. @throws Refusal */
export function newMessage(
  instanceId: InstanceId,
  content: Content,
  idempotencyKey: string | undefined,
  now: number,
): NewMessage {
  const { to, text, file } = content
  checkRecipient(to)
  checkText(text, file === undefined ? 'text' : 'caption')
  const idempotency = idempotencyKey === undefined ? undefined : { key: idempotencyKey, digest: contentDigest(content) }
  return { ...content, instanceId, id: newMessageId(now), whatsappId: newWhatsappId(), idempotency }
}

/**
 * Stores the message with the trace context of the call.
 * @throws Refusal
 */
export async function acceptMessage(
  { store, traces }: Pick<ApiContext, 'store' | 'traces'>,
  message: NewMessage,
  call: Pick<FastifyRequest, 'headers' | 'instanceId'>,
  now: number,
): Promise<{ id: MessageId; replayed: boolean }> {
  const caller = parseTraceparent(call.headers['traceparent'])
  const span = traces?.accept(message, caller)
  const traceparent = span === undefined ? caller : span.traceparent
  const outcome = await store.messages
    .accept(traceparent === undefined ? message : { ...message, traceparent }, now)
    .catch(error => {
      span?.end(error.name)
      throw error
    })
  span?.end(outcome.kind === 'accepted' || outcome.kind === 'replayed' ? null : outcome.kind)
  switch (outcome.kind) {
    case 'accepted':
    case 'replayed':
      return { id: outcome.id, replayed: outcome.kind === 'replayed' }
    case 'key_reused':
      throw new Refusal('idempotency_key_reused')
    case 'not_connected':
      throw new Refusal('instance_not_connected')
    case 'no_media':
      throw new Refusal('media_not_found')
    case 'pending_media':
      throw new Refusal('media_pending', undefined, { retryAfterSeconds: PENDING_RETRY_AFTER_SECONDS })
    case 'unsupported':
      throw new Refusal('media_unsupported', WHY_UNSUPPORTED[outcome.why])
    case 'refused':
      throw new Refusal(outcome.code)
    case 'old_nodes':
      return refuseBesideOldNodes()
    case 'no_instance':
      throw new Refusal(deletedMeanwhile(call))
  }
}

/** Calls with the same recipient and content are equal. Digests are stored, so those of texts must never change. */
function contentDigest({ to, text, file, extras, notBefore }: Content): Buffer {
  if (extras !== undefined || notBefore !== undefined) {
    const { mediaId, url, ...shown } = file ?? {}
    const named = file === undefined ? null : { mediaId: url ?? mediaId, ...shown }
    const content = {
      to,
      text,
      extras: extras === undefined ? null : { ...extras, metadata: sortKeys(extras.metadata) },
      notBefore: notBefore ?? null,
      file: named,
    }
    return hash('sha256', JSON.stringify(content), 'buffer')
  }
  // The digest of a file covers the word `file`, so it never equals the digest of a text.
  const content = file === undefined ? [text] : [text, 'file', file.url ?? file.mediaId, file.form, file.filename]
  return hash('sha256', JSON.stringify([to, ...content]), 'buffer')
}

/** For the digest: a program may write the same object again with its fields in another order. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(fields.map(([name, inner]) => [name, sortKeys(inner)]))
}
