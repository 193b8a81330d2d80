import type { Selectable } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { idBefore, toPage } from '../engine/cursor.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { MediaTable } from '../engine/schema/media.ts'
import type { ListedMedia } from './media.ts'

const LISTED = [
  'id',
  'received',
  'file_id',
  'mimetype',
  'size',
  'filename',
  'created_at',
  'expires_at',
  'gone_at',
  'gone_reason',
] as const

export async function listMedia(
  { statements, reader }: Core,
  instanceId: InstanceId,
  page: PageRequest,
): Promise<Page<ListedMedia>> {
  const media = statements.db.selectFrom('media').select(LISTED).where('instance_id', '=', instanceId)
  const before = media.where('id', '<', idBefore(page, 'med')).orderBy('id', 'desc')
  return toPage(await reader.query(before.limit(page.limit + 1)), page.limit, ({ id }) => id, toListed)
}

export async function findListed(
  { statements, reader }: Core,
  instanceId: InstanceId,
  id: string,
): Promise<ListedMedia | null> {
  const media = statements.db.selectFrom('media').select(LISTED).where('instance_id', '=', instanceId)
  const [row] = await reader.query(media.where('id', '=', id))
  return row === undefined ? null : toListed(row)
}

function toListed(row: Pick<Selectable<MediaTable>, (typeof LISTED)[number]>): ListedMedia {
  const { id, received, file_id, mimetype, size, filename, created_at, expires_at, gone_at, gone_reason } = row
  const state = gone_at !== null ? (gone_reason ?? 'erased') : file_id === null ? 'pending' : 'ready'
  const times = { createdAt: created_at, expiresAt: expires_at }
  return { id, isReceived: received === 1, state, mimetype, size, filename, ...times }
}
