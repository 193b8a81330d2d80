import { sql } from 'kysely'
import { type InstanceId, isCommandId, type MessageId } from '../../domain/ids.ts'
import type { IncomingMessage, ReferencedAuthor } from '../../domain/incoming-message.ts'
import type { Transaction } from '../engine/backend.ts'
import { IS_PREPARED } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import type { Lease } from '../leases/leases.ts'
import { chatOf } from '../numbers/contacts.ts'

/** A stored message that a reference may point to. */
interface Candidate {
  id: MessageId
  /** All addresses of its chat. */
  chats: readonly (string | null)[]
  author: ReferencedAuthor
}

/** Finds the stored messages that incoming ones quote or react to. */
export class IncomingReferences {
  readonly #findOwn
  readonly #findReceived

  constructor(statements: Statements) {
    this.#findOwn = statements.find(
      'messages',
      { instance_id: 'text', whatsapp_id: 'text' },
      ['instance_id', 'id', 'whatsapp_id', 'recipient', 'address'],
      { where: IS_PREPARED },
    )
    this.#findReceived = statements.find(
      'incoming_messages',
      { instance_id: 'text', whatsapp_id: 'text' },
      ['instance_id', 'id', 'whatsapp_id', 'chat', 'sender', 'addressing', 'lid', 'written'],
      { where: sql`length(incoming_messages.whatsapp_id) <= 100` },
    )
  }

  /**
   * Sets the `messageId` of each reference. A message of another chat with the same ID is ignored. Contacts choose the IDs of
   * their own messages, so several messages of a chat may have one ID: then the author decides. If the author is not stated,
   * messages that callers sent come first.
   */
  async resolve(tx: Transaction, inputs: readonly { lease: Lease; message: IncomingMessage }[]): Promise<void> {
    const references = inputs.flatMap(({ lease: { instanceId }, message }) =>
      [message.details?.quote, message.details?.reaction].flatMap(reference =>
        reference ? [{ instanceId, message, reference }] : [],
      ),
    )
    if (references.length === 0) return
    const keys = references.map(({ instanceId, reference }) => ({
      instance_id: instanceId,
      whatsapp_id: reference.whatsappId,
    }))
    const found = await this.#find(tx, keys)
    for (const { instanceId, message, reference } of references) {
      const { chat, group, lid, referencedAuthor } = message
      const names = group === undefined && lid !== null ? [chat, lid] : [chat]
      const fits = ({ chats }: Candidate) => chats.some(name => name !== null && names.includes(name))
      const fitting = found.get(`${instanceId}/${reference.whatsappId}`)?.filter(fits) ?? []
      const right = ({ author }: Candidate) => referencedAuthor === undefined || isSame(author, referencedAuthor)
      reference.messageId = (fitting.length > 1 ? fitting.find(right) : fitting[0])?.id ?? null
    }
  }

  /** @returns the messages by instance and WhatsApp ID */
  async #find(
    tx: Transaction,
    keys: readonly { instance_id: InstanceId; whatsapp_id: string }[],
  ): Promise<ReadonlyMap<string, Candidate[]>> {
    const found = new Map<string, Candidate[]>()
    const note = (key: string, candidate: Candidate) => found.set(key, [...(found.get(key) ?? []), candidate])
    for (const { instance_id, id, whatsapp_id, recipient, address } of await tx.each(this.#findOwn, keys)) {
      if (isCommandId(id)) continue
      const chats = [recipient, address === null ? null : chatOf(address)]
      note(`${instance_id}/${whatsapp_id}`, { id, chats, author: 'own' })
    }
    const encoded = keys.map(key => ({ ...key, whatsapp_id: JSON.stringify(key.whatsapp_id) }))
    for (const row of await tx.each(this.#findReceived, encoded)) {
      const { instance_id, id, whatsapp_id, chat, sender, addressing, lid, written } = row
      const names = [addressing === null ? sender : null, lid].filter(name => name !== null)
      const chats = [chat, chat.endsWith('@g.us') ? null : lid]
      note(`${instance_id}/${JSON.parse(whatsapp_id)}`, { id, chats, author: written === null ? names : 'own' })
    }
    return found
  }
}

function isSame(one: ReferencedAuthor, other: ReferencedAuthor): boolean {
  if (one === 'own' || other === 'own') return one === other
  return one.some(name => other.includes(name))
}
