import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DataMoved } from '../../errors.ts'
import { syncFolder } from '../sync-to-disk.ts'

const PRIVATE_FILE = 0o600

/** A file in the data folder whose data is being moved, or was moved, to PostgreSQL. Nothing uses the SQLite database then. */
export interface MoveMarker {
  /** The same in the marker and in the PostgreSQL database. */
  id: string
  state: 'moving' | 'moved'
  at: string
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'moved-to-postgres.json')
}

/** Null if the data is here. */
export function readMoveMarker(dataDir: string): MoveMarker | null {
  const file = fileOf(dataDir)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as MoveMarker) : null
}

/** The file is replaced in one step, and survives a power failure. */
export function writeMoveMarker(dataDir: string, marker: MoveMarker): void {
  const draft = `${fileOf(dataDir)}.draft`
  const descriptor = openSync(draft, 'w', PRIVATE_FILE)
  writeSync(descriptor, `${JSON.stringify(marker)}\n`)
  fsyncSync(descriptor)
  closeSync(descriptor)
  renameSync(draft, fileOf(dataDir))
  syncFolder(dataDir)
}

/** @throws DataMoved */
export function refuseMoved(dataDir: string): void {
  const marker = readMoveMarker(dataDir)
  if (marker !== null) throw new DataMoved(fileOf(dataDir), marker.state)
}
