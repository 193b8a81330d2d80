import { sql } from 'kysely'
import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { IncomingMessage } from '../../domain/incoming-message.ts'
import type { Transaction } from '../engine/backend.ts'
import { IS_PREPARED } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'

/** Finds the stored messages that incoming ones quote or react to. */
export class IncomingReferences {
  readonly #findOwn
  readonly #findReceived

  constructor(statements: Statements) {
    this.#findOwn = statements.find(
      'messages',
      { instance_id: 'text', whatsapp_id: 'text' },
      ['instance_id', 'id', 'whatsapp_id'],
      { where: IS_PREPARED },
    )
    this.#findReceived = statements.find(
      'incoming_messages',
      { instance_id: 'text', whatsapp_id: 'text' },
      ['instance_id', 'id', 'whatsapp_id'],
      { where: sql`length(incoming_messages.whatsapp_id) <= 100` },
    )
  }

  /** Sets the `messageId` of each reference. A message of another chat with the same ID does not count. */
  async resolve(tx: Transaction, inputs: readonly { lease: Lease; message: IncomingMessage }[]): Promise<void> {
    const referring = inputs.filter(({ message }) => message.details?.quote || message.details?.reaction)
    if (referring.length === 0) return
    const keys = referring.flatMap(({ lease, message: { details } }) =>
      [details?.quote, details?.reaction].flatMap(reference =>
        reference ? [{ instance_id: lease.instanceId, whatsapp_id: reference.whatsappId }] : [],
      ),
    )
    const found = new Map<string, MessageId>()
    const note = (instanceId: InstanceId, whatsappId: string, id: MessageId) =>
      found.set(`${instanceId}/${whatsappId}`, id)
    for (const row of await tx.each(this.#findOwn, keys)) note(row.instance_id, row.whatsapp_id, row.id)
    const encoded = keys.map(key => ({ ...key, whatsapp_id: JSON.stringify(key.whatsapp_id) }))
    for (const row of await tx.each(this.#findReceived, encoded))
      note(row.instance_id, JSON.parse(row.whatsapp_id), row.id)
    for (const { lease, message } of referring)
      for (const reference of [message.details?.quote, message.details?.reaction])
        if (reference) reference.messageId = found.get(`${lease.instanceId}/${reference.whatsappId}`) ?? null
  }
}
