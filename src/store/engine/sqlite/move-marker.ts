import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DataMoved } from '../../errors.ts'
import { giveToOwnerOf } from '../file-owner.ts'
import { syncFolder } from '../sync-to-disk.ts'

const PRIVATE_FILE = 0o600

/** A file in the data folder whose data is being moved, or was moved, to PostgreSQL. Nothing uses the SQLite database then. */
export interface MoveMarker {
  /** The same in the marker and in the PostgreSQL database. */
  id: string
  state: 'moving' | 'moved'
  at: string
  /** The PostgreSQL database that has the record of the move, or the moved data: its host and name. Absent before there is one. */
  into?: string
}

/** The file of the marker. */
export function markerFile(dataDir: string): string {
  return join(dataDir, 'moved-to-postgres.json')
}

/** Null if the data is here. */
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
