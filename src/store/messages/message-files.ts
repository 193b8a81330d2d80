import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { formOf, hasCaption, showsPicture, UNKNOWN_TYPE } from '../../domain/media.ts'
import type { MessageFile } from '../../domain/message.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'
import { hasOldNodes } from '../leases/old-nodes.ts'
import type { AcceptOutcome, NewMessage, NewMessageFile } from './messages.ts'

/** The columns of a message that contain its file. Of a preview's image, which is kept like a file, they contain only the ID. */
export interface FileColumns {
  media_id: string
  file: string | null
}

type FileCheck =
  | FileColumns
  | Extract<AcceptOutcome, { kind: 'no_media' | 'pending_media' | 'unsupported' | 'old_nodes' }>

interface MediaRow {
  mimetype: string
  filename: string | null
  file_id: string | null
}

/** @returns a check of the files of messages, and of the images of their previews */
export function fileChecker(statements: Statements) {
  // The lock keeps the file from being erased before the commit. Afterwards the queued message does.
  const findMedia = statements.find(
    'media',
    { instance_id: 'text', id: 'text' },
    ['instance_id', 'id', 'mimetype', 'filename', 'file_id'],
    { where: sql`media.gone_at is null`, lock: 'key share' },
  )

  /** @param messages each has a file or a preview with an image */
  return async (tx: Transaction, messages: readonly NewMessage[]): Promise<Map<NewMessage, FileCheck>> => {
    const feature = messages.some(({ file }) => file?.url !== undefined) ? 'urls' : 'media'
    if (await hasOldNodes(statements, tx, feature))
      return new Map(messages.map(message => [message, { kind: 'old_nodes' }]))
    const keys = messages.flatMap(message => {
      const { instanceId: instance_id, file, extras } = message
      const id = file === undefined ? extras?.preview?.image : file.url === undefined && file.mediaId
      return id ? [{ instance_id, id }] : []
    })
    const rows = keys.length === 0 ? [] : await tx.each(findMedia, keys)
    const found = new Map(rows.map(row => [`${row.instance_id}/${row.id}`, row]))
    return new Map(
      messages.map(message => {
        const { instanceId, file, text, extras } = message
        const find = (id: string) => found.get(`${instanceId}/${id}`)
        if (file === undefined) return [message, checkPreview(extras!.preview!.image!, find)]
        if (file.url !== undefined) return [message, checkUnknown(file, text)]
        const media = find(file.mediaId)
        return [message, media === undefined ? { kind: 'no_media' } : checkFile(file, text, media)]
      }),
    )
  }
}

function checkPreview(previewId: string, find: (id: string) => MediaRow | undefined): FileCheck {
  const media = find(previewId)
  if (media === undefined) return { kind: 'no_media' }
  if (media.file_id === null) return { kind: 'pending_media' }
  return showsPicture(media.mimetype) ? { media_id: previewId, file: null } : { kind: 'unsupported', why: 'preview' }
}

function checkFile({ mediaId, form: asked, filename }: NewMessageFile, text: string, media: MediaRow): FileCheck {
  if (media.file_id === null) return { kind: 'pending_media' }
  const form = formOf(media.mimetype, asked)
  if (form === null) return { kind: 'unsupported', why: 'form' }
  if (text !== '' && !hasCaption(form)) return { kind: 'unsupported', why: 'caption' }
  const notVoice = asked === 'voice' && form === 'audio' && { notVoice: true as const }
  return columnsOf(mediaId, { form, filename: filename ?? media.filename, ...notVoice })
}

/** Checks a file that is still to be fetched. */
function checkUnknown({ mediaId, form, filename }: NewMessageFile, text: string): FileCheck {
  if (text !== '' && form !== null && !hasCaption(form)) return { kind: 'unsupported', why: 'caption' }
  return columnsOf(mediaId, { form, filename, fetch: 'pending' })
}

function columnsOf(media_id: string, shown: Omit<MessageFile, 'mediaId'>): FileColumns {
  return { media_id, file: JSON.stringify(shown) }
}

interface NewFetch {
  instanceId: InstanceId
  file: NewMessageFile
  now: number
}

/** @returns the insertion of media that are to be fetched, in the commit of their messages */
export function fetchInserter(statements: Statements) {
  const insertMedia = statements.insert(
    'media',
    { instance_id: 'text', id: 'text', filename: 'text?', created_at: 'integer', expires_at: 'integer' },
    { fixed: { received: sql.lit(2), size: sql.lit(0), mimetype: sql.lit(UNKNOWN_TYPE) } },
  )
  const insertFetches = statements.insert(
    'media_fetches',
    { instance_id: 'text', media_id: 'text', url: 'text', host: 'text' },
    { fixed: { attempts: sql.lit(0), due_at: statements.now } },
  )
  return (tx: Transaction, fetches: readonly NewFetch[]): void => {
    const rows = fetches.flatMap(({ instanceId: instance_id, file: { mediaId: id, filename, url }, now }) =>
      url === undefined ? [] : [{ instance_id, id, filename, url, now }],
    )
    tx.post(
      insertMedia,
      // The real `expires_at` is set when the file is stored. Until then, the queued message prevents the expiry.
      rows.map(({ instance_id, id, filename, now }) => ({
        instance_id,
        id,
        filename,
        created_at: now,
        expires_at: now,
      })),
    )
    tx.post(
      insertFetches,
      rows.map(({ instance_id, id, url }) => ({ instance_id, media_id: id, url, host: new URL(url).host })),
    )
  }
}
