import { hash } from 'node:crypto'
import type { InstanceId, MessageId } from '../domain/ids.ts'
import { newMessageId, newWhatsappId } from '../domain/ids.ts'
import { Refusal } from '../domain/refusal.ts'
import type { ApiContext } from './context.ts'
import { checkRecipient, checkText } from './input.ts'

export interface Text {
  to: string
  text: string
  idempotencyKey: string | undefined
}

/** @throws Refusal; `invalid_token` where the instance has just been deleted */
export async function acceptText(
  { store, now }: ApiContext,
  instanceId: InstanceId,
  { to, text, idempotencyKey: key }: Text,
): Promise<{ id: MessageId; replayed: boolean }> {
  checkRecipient(to)
  checkText(text)
  const acceptedAt = now()
  const outcome = await store.messages.accept(
    {
      id: newMessageId(acceptedAt),
      instanceId,
      to,
      text,
      whatsappId: newWhatsappId(),
      idempotency: key === undefined ? undefined : { key, digest: contentDigest(to, text) },
    },
    acceptedAt,
  )
  switch (outcome.kind) {
    case 'accepted':
    case 'replayed':
      return { id: outcome.id, replayed: outcome.kind === 'replayed' }
    case 'key_reused':
      throw new Refusal('idempotency_key_reused')
    case 'not_connected':
      throw new Refusal('instance_not_connected')
    case 'no_instance':
      throw new Refusal('invalid_token')
  }
}

/** Two bodies are the same when `to` and `text` are, whatever else stands in them. */
function contentDigest(to: string, text: string): Buffer {
  return hash('sha256', JSON.stringify([to, text]), 'buffer')
}
