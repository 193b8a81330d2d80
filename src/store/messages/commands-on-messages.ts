import { EDIT_WINDOW_MS, type MessageExtras } from '../../domain/conversation.ts'
import { firstCommandId, firstMessageId, type InstanceId, type MessageId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import { IS_QUEUED, IS_SCHEDULED, IS_SETTLED } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'

/** So that the commit of a cancellation stays short. The sender fails the other commands at their turn. */
const MAX_WAITING = 500

export interface StoredCommand {
  instance_id: InstanceId
  id: MessageId
  extras: string | null
}

interface EditedMessage {
  instance_id: InstanceId
  id: MessageId
  created_at: number
  edited_at: number | null
}

/** Finds the commands on a message. Their rows name it only in their extras. */
export class CommandsOnMessages {
  readonly #findPlace
  readonly #findScheduled
  readonly #findQueued
  readonly #findEnded

  constructor(statements: Statements) {
    const { db } = statements
    this.#findPlace = statements.find('messages', { instance_id: 'text', id: 'text' }, ['seq', 'not_before'])
    // A command on a scheduled message is due at the same time.
    this.#findScheduled = statements.one((p: { instanceId: InstanceId; notBefore: number; naming: string }) =>
      db
        .selectFrom('messages')
        .select(['instance_id', 'id', 'extras'])
        .where('instance_id', '=', p.instanceId)
        .where(IS_SCHEDULED)
        .where('not_before', '=', p.notBefore)
        .where('id', '<', firstMessageId(0))
        .where('extras', 'like', p.naming)
        .orderBy('created_at')
        .orderBy('id')
        .limit(MAX_WAITING),
    )
    this.#findQueued = statements.one((p: { instanceId: InstanceId; seq: number; naming: string }) =>
      db
        .selectFrom('messages')
        .select(['instance_id', 'id', 'extras'])
        .where('instance_id', '=', p.instanceId)
        .where(IS_QUEUED)
        .where('seq', '>', p.seq)
        .where('id', '>=', firstCommandId(0))
        .where('id', '<', firstMessageId(0))
        .where('extras', 'like', p.naming)
        .orderBy('seq')
        .limit(MAX_WAITING),
    )
    this.#findEnded = statements.one(
      (p: { instanceId: InstanceId; from: MessageId; below: MessageId; naming: string }) =>
        db
          .selectFrom('messages')
          .select(['instance_id', 'id', 'extras'])
          .where('instance_id', '=', p.instanceId)
          .where('id', '>=', p.from)
          .where('id', '<', p.below)
          .where(IS_SETTLED)
          .where('extras', 'like', p.naming),
    )
  }

  /** @returns the queued commands on a queued message in their order, at most 500 released and 500 scheduled ones */
  async findWaiting(tx: Transaction, instanceId: InstanceId, message: MessageId): Promise<MessageId[]> {
    const [place] = await tx.each(this.#findPlace, [{ instance_id: instanceId, id: message }])
    if (place === undefined) return []
    const { seq, not_before: notBefore } = place
    const query = { instanceId, naming: naming(message) }
    const found: StoredCommand[] = []
    // A negative number: the message was not released yet.
    if (seq > 0) found.push(...(await tx.run(this.#findQueued, { ...query, seq })))
    if (notBefore !== null) found.push(...(await tx.run(this.#findScheduled, { ...query, notBefore })))
    return found.filter(row => isOn(message, row)).map(({ id }) => id)
  }

  /** @returns the edits of a message that are done. The clocks of the nodes that accepted them may differ by some minutes. */
  async findEdits(tx: Transaction, message: EditedMessage): Promise<StoredCommand[]> {
    const { instance_id: instanceId, id, created_at: createdAt, edited_at: editedAt } = message
    if (editedAt === null) return []
    const from = firstCommandId(createdAt - EDIT_WINDOW_MS)
    const below = firstCommandId(editedAt + EDIT_WINDOW_MS)
    const found = await tx.run(this.#findEnded, { instanceId, from, below, naming: naming(id) })
    return found.filter(row => commandOf(row)?.kind === 'edit' && isOn(id, row))
  }
}

/** A pattern that the extras of every command on the message match. Metadata may match it as well. */
function naming(message: MessageId): string {
  return `%"messageId":"${message}"%`
}

function isOn(message: MessageId, row: StoredCommand): boolean {
  return commandOf(row)?.target.messageId === message
}

function commandOf({ extras }: StoredCommand): MessageExtras['command'] {
  const { command }: MessageExtras = JSON.parse(extras ?? '{}')
  return command
}
