import { type CommandState, type MessageExtras, summaryOf } from '../../domain/conversation.ts'
import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { MessageFailure } from '../../domain/message.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import { chatOf } from '../numbers/contacts.ts'
import { findIncomingStatement, toIncoming } from './incoming.ts'
import type { QuotedMessage } from './messages.ts'

/** Reads the messages that quotes and commands refer to (resolved by `ExtrasResolver`), and the state of commands. */
export class QuotesAndCommands {
  readonly #core: Core
  readonly #findOwn
  readonly #findReceived
  readonly #unquote

  constructor(core: Core) {
    const { statements } = core
    this.#core = core
    this.#findOwn = statements.find('messages', { instance_id: 'text', id: 'text' }, [
      'id',
      'state',
      'recipient',
      'address',
      'created_at',
      'sent_at',
      'failed_at',
      'failure_code',
      'failure_message',
      'text',
      'content',
      'extras',
      'deleted_at',
    ])
    this.#findReceived = findIncomingStatement(statements)
    this.#unquote = fencedOneByOne('messages.unquote', async (tx, { lease, id }: { lease: Lease; id: MessageId }) => {
      const [row] = await tx.each(this.#findOwn, [{ instance_id: lease.instanceId, id }])
      const extras: MessageExtras = JSON.parse(row?.extras ?? '{}')
      if (!extras.quote) return
      const dropped = JSON.stringify({ ...extras, quote: { ...extras.quote, dropped: true } })
      const query = statements.db.updateTable('messages').set({ extras: dropped })
      await tx.query(query.where('instance_id', '=', lease.instanceId).where('id', '=', id))
    })
  }

  async findQuoted(instanceId: InstanceId, id: MessageId): Promise<QuotedMessage | null> {
    const { reader } = this.#core
    const [own] = await reader.each(this.#findOwn, [{ instance_id: instanceId, id }])
    if (own) {
      const { state, recipient, address, sent_at, text, content, deleted_at } = own
      const chats = [recipient, ...(address === null ? [] : [chatOf(address)])]
      // The deletion of a message that was never written made it fail, so nothing can be done with it on WhatsApp.
      const isKnown = deleted_at === null || state === 'failed'
      return isKnown ? { state, chats, sentAt: sent_at, type: 'text', text, content } : null
    }
    const [row] = await reader.run(this.#findReceived, { instanceId, id })
    if (row === undefined) return null
    const { chat, type, text = '', sentAt, deletedAt } = toIncoming(row)
    return deletedAt !== null ? null : { state: null, chats: [chat], sentAt, type, text, content: null }
  }

  async recordUnquoted(lease: Lease, id: MessageId): Promise<void> {
    await this.#core.write(this.#unquote, { lease, id })
  }

  async findCommand(
    instanceId: InstanceId,
    id: MessageId,
  ): Promise<(CommandState & { failure: MessageFailure | null }) | null> {
    const [row] = await this.#core.reader.each(this.#findOwn, [{ instance_id: instanceId, id }])
    const { command }: MessageExtras = JSON.parse(row?.extras ?? '{}')
    if (!row || !command) return null
    const { failure_code: code, failure_message: message } = row
    return {
      id,
      ...summaryOf(command),
      createdAt: row.created_at,
      doneAt: row.sent_at,
      failedAt: row.failed_at,
      failure: code === null ? null : { code, message: message! },
    }
  }
}
