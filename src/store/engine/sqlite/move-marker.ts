import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DataMoved } from '../../errors.ts'
import { giveToOwnerOf } from '../file-owner.ts'
import { syncFolder } from '../sync-to-disk.ts'

const PRIVATE_FILE = 0o600

/**
 * A file that marks a data folder whose data was moved, or is being moved, to PostgreSQL. Only the move may use that
 * data.
 */
export interface MoveMarker {
  /** The same in the marker and in the PostgreSQL database. */
  id: string
  state: 'moving' | 'moved'
  at: string
  /** The host and name of the PostgreSQL database, once it has a record of the move or the moved data. */
  into?: string
}

/** The file of the marker. */
export function markerFile(dataDir: string): string {
  return join(dataDir, 'moved-to-postgres.json')
}

/** Null if no move has begun. */
export function readMoveMarker(dataDir: string): MoveMarker | null {
  const file = markerFile(dataDir)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as MoveMarker) : null
}

/** The file is replaced in one step, and survives a power failure. */
export function writeMoveMarker(dataDir: string, marker: MoveMarker): void {
  const draft = `${markerFile(dataDir)}.draft`
  const descriptor = openSync(draft, 'w', PRIVATE_FILE)
  writeSync(descriptor, `${JSON.stringify(marker)}\n`)
  fsyncSync(descriptor)
  closeSync(descriptor)
  giveToOwnerOf(dataDir, draft)
  renameSync(draft, markerFile(dataDir))
  syncFolder(dataDir)
}

/** @throws DataMoved */
export function refuseMoved(dataDir: string): void {
  const marker = readMoveMarker(dataDir)
  if (marker !== null) throw new DataMoved(markerFile(dataDir), marker.state)
}
