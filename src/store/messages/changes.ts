import { sql } from 'kysely'
import type { MessageExtras } from '../../domain/conversation.ts'
import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'
import { CommandsOnMessages, type StoredCommand } from './commands-on-messages.ts'

/** An edit (with the new text) or deletion of a stored message. */
export interface Change {
  instanceId: InstanceId
  messageId: MessageId
  /** Null: the message was deleted, and its text is erased. */
  text: string | null
  at: number
}

interface MessageKey {
  instance_id: InstanceId
  id: MessageId
}

/** A command that is done or has failed. */
export interface EndedCommand extends StoredCommand {
  failed: boolean
  at: number
}

interface EndedEdit extends StoredCommand {
  target: MessageId
  failed: boolean
}

/** Changes the texts of stored messages, both sent and delivered ones. */
export class Changes {
  readonly #editSent
  readonly #editDelivered
  readonly #findSent
  readonly #findWritten
  readonly #eraseSent
  readonly #eraseDelivered
  readonly #eraseEdit
  readonly #commands: CommandsOnMessages

  constructor(statements: Statements) {
    this.#commands = new CommandsOnMessages(statements)
    const key = { instance_id: 'text', id: 'text' } as const
    const edited = { text: 'text', edited_at: 'integer' } as const
    this.#editSent = statements.update('messages', key, edited, { where: sql`messages.deleted_at is null` })
    this.#editDelivered = statements.update('incoming_messages', key, edited, {
      where: sql`incoming_messages.deleted_at is null`,
    })
    const times = ['created_at', 'edited_at', 'deleted_at'] as const
    this.#findSent = statements.find('messages', key, ['instance_id', 'id', ...times, 'extras'], { lock: 'update' })
    this.#findWritten = statements.find('incoming_messages', key, ['instance_id', 'id', ...times], {
      where: sql`incoming_messages.written = 1`,
      lock: 'update',
    })
    this.#eraseSent = statements.update('messages', key, {
      text: 'text',
      content: 'blob?',
      extras: 'text?',
      deleted_at: 'integer',
    })
    this.#eraseDelivered = statements.update('incoming_messages', key, {
      text: 'text?',
      details: 'text?',
      deleted_at: 'integer',
    })
    this.#eraseEdit = statements.update('messages', key, { content: 'blob?', extras: 'text?' })
  }

  /** Applies the last edit or deletion of each message. Nothing follows a deletion. */
  async applyCommands(tx: Transaction, ended: readonly EndedCommand[]): Promise<void> {
    const latest = new Map<string, Change>()
    const edits: EndedEdit[] = []
    for (const { instance_id, id, extras, failed, at } of ended) {
      const { command }: MessageExtras = JSON.parse(extras ?? '{}')
      if (command?.kind !== 'edit' && command?.kind !== 'delete') continue
      const { messageId } = command.target
      if (command.kind === 'edit') edits.push({ instance_id, id, extras, target: messageId, failed })
      const key = `${instance_id}/${messageId}`
      if (failed || latest.get(key)?.text === null) continue
      const text = command.kind === 'edit' ? command.text : null
      latest.set(key, { instanceId: instance_id, messageId, text, at })
    }
    if (latest.size > 0) await this.apply(tx, [...latest.values()])
    if (edits.length > 0) await this.#eraseUselessEdits(tx, edits)
  }

  /** @param changes at most one for each message */
  async apply(tx: Transaction, changes: readonly Change[]): Promise<void> {
    const rows = changes.map(({ instanceId: instance_id, messageId: id, text, at }) => ({ instance_id, id, text, at }))
    const edits = rows.flatMap(({ text, at, ...row }) => (text === null ? [] : [{ ...row, text, edited_at: at }]))
    if (edits.length > 0) {
      tx.post(this.#editSent, edits)
      const encoded = edits.map(edit => ({ ...edit, text: JSON.stringify(edit.text) }))
      tx.post(this.#editDelivered, encoded)
    }
    const deletions = rows.flatMap(({ text, at, ...row }) => (text === null ? [{ ...row, deleted_at: at }] : []))
    if (deletions.length > 0) await this.#delete(tx, deletions)
  }

  async #delete(tx: Transaction, deletions: readonly (MessageKey & { deleted_at: number })[]): Promise<void> {
    const { sent, written } = await this.#findOwn(tx, deletions)
    const extras = new Map(sent.map(row => [row.id, withoutPreview(row.extras)]))
    tx.post(
      this.#eraseSent,
      deletions.map(row => ({ ...row, text: '', content: null, extras: extras.get(row.id) ?? null })),
    )
    tx.post(
      this.#eraseDelivered,
      deletions.map(row => ({ ...row, text: null, details: null })),
    )
    for (const row of [...sent, ...written]) this.#eraseEdits(tx, await this.#commands.findEdits(tx, row))
  }

  /** Erases the new texts of edits that have failed, or that are done after their message was deleted. */
  async #eraseUselessEdits(tx: Transaction, edits: readonly EndedEdit[]): Promise<void> {
    const { sent, written } = await this.#findOwn(
      tx,
      edits.map(({ instance_id, target: id }) => ({ instance_id, id })),
    )
    const shown = new Set([...sent, ...written].flatMap(row => (row.deleted_at === null ? [row.id] : [])))
    this.#eraseEdits(
      tx,
      edits.filter(({ failed, target }) => failed || !shown.has(target)),
    )
  }

  /** Messages of the instance: sent through the API, or written by the owner on another device. */
  async #findOwn(tx: Transaction, keys: readonly MessageKey[]) {
    const unique = keys.map(({ instance_id, id }) => ({ instance_id, id }))
    return { sent: await tx.each(this.#findSent, unique), written: await tx.each(this.#findWritten, unique) }
  }

  #eraseEdits(tx: Transaction, edits: readonly StoredCommand[]): void {
    if (edits.length === 0) return
    tx.post(
      this.#eraseEdit,
      edits.map(({ instance_id, id, extras }) => ({ instance_id, id, content: null, extras: withoutNewText(extras) })),
    )
  }
}

function withoutNewText(stored: string | null): string | null {
  const extras: MessageExtras = JSON.parse(stored ?? '{}')
  if (extras.command?.kind !== 'edit') return stored
  return JSON.stringify({ ...extras, command: { ...extras.command, text: '' } })
}

function withoutPreview(stored: string | null): string | null {
  if (stored === null) return null
  const { preview: _, ...extras }: MessageExtras = JSON.parse(stored)
  return JSON.stringify(extras)
}
