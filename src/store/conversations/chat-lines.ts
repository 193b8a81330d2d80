import { type RawBuilder, sql } from 'kysely'
import { type MessageExtras, summaryOf } from '../../domain/conversation.ts'
import { firstCommandId, type InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { IS_QUEUED } from '../engine/schema/messages.ts'
import type { StoredIncoming } from '../messages/messages.ts'
import type { Slice } from '../messages/searching.ts'
import type { SentRow } from '../messages/sent-rows.ts'
import { BYTES, type FoundMessage } from '../messages/sizes.ts'
import type { Line, StoredCommand } from './conversations.ts'

/** All names of one chat. */
export interface Names {
  /** As a caller or an event names it. */
  chats: readonly string[]
  /** As WhatsApp names it. */
  addresses: readonly string[]
}

export function namesOf(...names: readonly (string | null)[]): Names {
  const chats = [...new Set(names.filter(name => name !== null))]
  return { chats, addresses: chats.map(addressOf) }
}

export function addressOf(chat: string): string {
  return chat.includes('@') ? chat : `${chat}@s.whatsapp.net`
}

/** A message that WhatsApp delivered. */
export function lineOf(message: StoredIncoming): Line {
  return { direction: message.written ? 'written' : 'in', message }
}

/** Finds the lines of one chat by their own indexes, highest ID first. */
export class ChatLines {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  /** @param below an ID in the form of a message ID, `msg_…` */
  findCommands(instanceId: InstanceId, below: string, limit: number, names: Names): Promise<FoundMessage[]> {
    const slice = { below: `cmd_${below.replace('msg_', '')}`, from: firstCommandId(0) }
    return this.findSent(instanceId, slice, limit, names)
  }

  /** Received messages, and those that the owner wrote on another device. @param isWritten null: both */
  async findDelivered(
    instanceId: InstanceId,
    slice: Slice,
    limit: number,
    names: Names,
    isWritten: boolean | null = null,
  ): Promise<FoundMessage[]> {
    const { reader, statements } = this.#core
    const rows = await reader.query(
      statements.db
        .selectFrom('incoming_messages')
        .select(['id', BYTES.incoming_messages.as('bytes')])
        .where('instance_id', '=', instanceId)
        .where('id', 'in', deliveredIds(instanceId, slice, limit, names, isWritten))
        .orderBy('id', 'desc')
        .limit(limit),
    )
    return rows.map(row => ({ ...row, table: 'incoming_messages' }))
  }

  async findSent(instanceId: InstanceId, slice: Slice, limit: number, names: Names): Promise<FoundMessage[]> {
    const { reader, statements } = this.#core
    const rows = await reader.query(
      statements.db
        .selectFrom('messages')
        .select(['id', BYTES.messages.as('bytes')])
        .where('instance_id', '=', instanceId)
        .where('id', 'in', sentIds(instanceId, slice, limit, names))
        .orderBy('id', 'desc')
        .limit(limit),
    )
    return rows.map(row => ({ ...row, table: 'messages' }))
  }
}

/**
 * Contains the highest IDs of the slice. A message that was never prepared has no WhatsApp address. It is queued or has
 * failed, and is found by its recipient.
 */
export function sentIds(instanceId: InstanceId, { below, from }: Slice, limit: number, names: Names) {
  const part = (condition: RawBuilder<unknown>) => sql`select id from (
    select id from messages where instance_id = ${instanceId} and ${condition} and id < ${below} and id >= ${from}
      order by id desc limit ${limit}) as part`
  return anyOf([
    ...names.addresses.map(address => part(sql`address = ${address} and address is not null`)),
    ...names.chats.map(chat => part(sql`failed_at is not null and address is null and recipient = ${chat}`)),
    part(sql`${IS_QUEUED} and address is null and recipient in (${sql.join(names.chats)})`),
  ])
}

/** Contains the highest IDs of the slice. @param isWritten null: both */
export function deliveredIds(
  instanceId: InstanceId,
  { below, from }: Slice,
  limit: number,
  names: Names,
  isWritten: boolean | null,
) {
  const which = isWritten === null ? sql`` : isWritten ? sql`and written = 1` : sql`and written is null`
  return anyOf(
    names.chats.map(
      chat => sql`select id from (
        select id from incoming_messages where instance_id = ${instanceId} and chat = ${chat} and id < ${below}
          and id >= ${from} ${which} order by id desc limit ${limit}) as part`,
    ),
  )
}

function anyOf(parts: readonly RawBuilder<unknown>[]): RawBuilder<string> {
  return sql<string>`(${sql.join(parts, sql` union all `)})`
}

export function toCommand(row: SentRow): StoredCommand {
  const { failure_code: code, failure_message: message } = row
  const { command }: MessageExtras = JSON.parse(row.extras ?? '{}')
  return {
    id: row.id,
    ...summaryOf(command!),
    createdAt: row.created_at,
    doneAt: row.sent_at,
    failedAt: row.failed_at,
    failure: code === null ? null : { code, message: message! },
    command: command!,
  }
}
