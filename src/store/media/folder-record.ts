import { sql } from 'kysely'
import { oneByOne } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import type { FolderRecord } from './media.ts'

const KEY = 'media_folder'

interface FolderRow {
  folder: Uint8Array | null
  has_files: unknown
  has_stored: unknown
  has_bytes: unknown
  has_nodes: unknown
}

type Queries = Pick<Statements, 'db' | 'now'>

function filesAndNodes({ db, now }: Queries) {
  const nodes = db.selectFrom('nodes').select('id').where('seen_until', '>', now)
  return { files: db.selectFrom('media_files').select('id'), nodes }
}

export function folderQuery({ db, now }: Queries) {
  const { files, nodes } = filesAndNodes({ db, now })
  return db.selectNoFrom(({ exists, or }) => [
    db.selectFrom('meta').select('value').where('key', '=', KEY).as('folder'),
    or([
      exists(files),
      exists(db.selectFrom('media_downloads').select('media_id')),
      exists(db.selectFrom('media_fetches').select('media_id')),
    ]).as('has_files'),
    exists(files.where('state', '=', 'stored')).as('has_stored'),
    exists(files).as('has_bytes'),
    exists(nodes).as('has_nodes'),
  ])
}

export function toFolderRecord({ folder, has_files, has_stored, has_bytes, has_nodes }: FolderRow): FolderRecord {
  return {
    id: folder === null ? null : Buffer.from(folder).toString(),
    hasFiles: Boolean(has_files),
    hasStored: Boolean(has_stored),
    hasBytes: Boolean(has_bytes),
    hasNodes: Boolean(has_nodes),
  }
}

export function recordFolder(statements: Statements) {
  const { db } = statements
  const { files, nodes } = filesAndNodes(statements)
  return oneByOne(
    'media.record_folder',
    () => '',
    async (tx, { id, former }: { id: string; former: string | null }): Promise<{ id: string }> => {
      const value = Buffer.from(id)
      const isFormer = former === null ? sql<boolean>`1 = 0` : sql<boolean>`meta.value = ${Buffer.from(former)}`
      // A node that has confirmed the former ID may run by now, and may have stored files in the folder with it.
      await tx.query(
        db
          .insertInto('meta')
          .values({ key: KEY, value })
          .onConflict(oc =>
            oc
              .column('key')
              .doUpdateSet({ value })
              .where(({ and, exists, not }) => and([isFormer, not(exists(files)), not(exists(nodes))])),
          ),
      )
      const [row] = await tx.query(db.selectFrom('meta').select('value').where('key', '=', KEY))
      return { id: Buffer.from(row!.value).toString() }
    },
    false,
  )
}
