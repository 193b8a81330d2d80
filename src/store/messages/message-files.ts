import { sql } from 'kysely'
import { canBeShownAs, defaultForm, hasCaption } from '../../domain/media.ts'
import type { MessageFile } from '../../domain/message.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'
import { hasOldNodes } from '../leases/old-nodes.ts'
import type { AcceptOutcome, NewMessage, NewMessageFile } from './messages.ts'

/** The file of a message as it is to be sent, or why it cannot be. */
type FileCheck =
  | MessageFile
  | Extract<AcceptOutcome, { kind: 'no_media' | 'pending_media' | 'unsupported' | 'old_nodes' }>

/** @returns a check of the files of messages */
export function fileChecker(statements: Statements) {
  // The lock keeps the file from being erased before the commit. Afterwards the queued message does.
  const findMedia = statements.find(
    'media',
    { instance_id: 'text', id: 'text' },
    ['instance_id', 'id', 'mimetype', 'filename', 'file_id'],
    { where: sql`media.gone_at is null`, lock: 'key share' },
  )

  return async (tx: Transaction, messages: readonly NewMessage[]): Promise<Map<NewMessage, FileCheck>> => {
    const asking = messages.flatMap(message => (message.file === undefined ? [] : [{ message, file: message.file }]))
    if (await hasOldNodes(statements, tx, 'media'))
      return new Map(asking.map(({ message }) => [message, { kind: 'old_nodes' }]))
    const keys = asking.map(({ message, file }) => ({ instance_id: message.instanceId, id: file.mediaId }))
    const found = new Map((await tx.each(findMedia, keys)).map(row => [`${row.instance_id}/${row.id}`, row]))
    return new Map(
      asking.map(({ message, file }) => {
        const media = found.get(`${message.instanceId}/${file.mediaId}`)
        return [message, media === undefined ? { kind: 'no_media' } : checkFile(file, message.text, media)]
      }),
    )
  }
}

function checkFile(
  { mediaId, ...asked }: NewMessageFile,
  text: string,
  media: { mimetype: string; filename: string | null; file_id: string | null },
): FileCheck {
  if (media.file_id === null) return { kind: 'pending_media' }
  const form = asked.form ?? defaultForm(media.mimetype)
  if (!canBeShownAs(media.mimetype, form)) return { kind: 'unsupported', why: 'form' }
  if (text !== '' && !hasCaption(form)) return { kind: 'unsupported', why: 'caption' }
  return { mediaId, form, filename: asked.filename ?? media.filename }
}

/** The columns of a message that contain its file. */
export function fileColumns(file: FileCheck): { media_id: string | null; file: string | null } {
  if (!('form' in file)) return { media_id: null, file: null }
  const { mediaId, ...shown } = file
  return { media_id: mediaId, file: JSON.stringify(shown) }
}
