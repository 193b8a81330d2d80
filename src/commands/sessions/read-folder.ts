import { readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { type Session, type StoredValue, tryToReadSession } from '../../whatsapp/baileys/transfer/session.ts'

const CREDS_FILE = 'creds.json'
const EXTENSION = '.json'
/** Larger than any value that Baileys writes. */
const MAX_FILE_BYTES = 16 * 1024 * 1024

/** A folder or file that may contain a session. */
export interface FoundSession {
  /** The folder, or the file and its session. */
  place: string
  name: string
  /** Where the other program posted the events of the session. */
  webhookUrl: string | null
  /** The time of the last write to any of its files, in milliseconds since 1970. */
  writtenAt: number | null
  /** How many other programs are connected to its database. Null if it has no database, or this is unknown. */
  otherClients: number | null
  /** The session, or a sentence that says why it cannot be used. */
  content: Session | string
}

/** The keys in a folder that has no credentials, as Evolution keeps them. */
export function readKeys(folder: string): { values: StoredValue[]; writtenAt: number | null } {
  return readFiles(folder)
}

/** The session in a folder, or those in its subfolders. */
export function findInFolder(folder: string): FoundSession[] {
  const names = listNames(folder)
  if (names === null) return [refuse(folder, 'There is no such folder.')]
  if (names.includes(CREDS_FILE)) return [readFolder(folder)]
  const inside = names.map(name => join(folder, name)).filter(child => listNames(child)?.includes(CREDS_FILE))
  if (inside.length > 0) return inside.sort().map(readFolder)
  return [refuse(folder, `It is not a Baileys session: neither it nor a folder in it contains ${CREDS_FILE}.`)]
}

function readFolder(folder: string): FoundSession {
  const before = readFiles(folder)
  const found = {
    place: folder,
    name: nameOf(folder),
    webhookUrl: null,
    writtenAt: before.writtenAt,
    otherClients: null,
  }
  const content = tryToReadSession(before.values)
  const isUnchanged = before.state === stateOf(folder)
  return { ...found, content: isUnchanged ? content : 'It was written to just now: stop the other program first.' }
}

function readFiles(folder: string): { values: StoredValue[]; writtenAt: number | null; state: string } {
  const state = stateOf(folder)
  const values = filesIn(folder).map(({ name, path, size }) => ({
    name: name.slice(0, -EXTENSION.length),
    json: size > MAX_FILE_BYTES ? null : readText(path),
  }))
  const times = filesIn(folder).map(({ mtimeMs }) => mtimeMs)
  return { values, writtenAt: times.length === 0 ? null : Math.max(...times), state }
}

/** Differs after any write, unless the clock of the file system stood still. */
function stateOf(folder: string): string {
  return filesIn(folder)
    .map(({ name, size, mtimeMs }) => `${name} ${size} ${mtimeMs}`)
    .join('\n')
}

function filesIn(folder: string) {
  return (listNames(folder) ?? [])
    .filter(name => name.endsWith(EXTENSION))
    .sort()
    .flatMap(name => {
      const path = join(folder, name)
      const stats = statsOf(path)
      return stats?.isFile() ? [{ name, path, size: stats.size, mtimeMs: stats.mtimeMs }] : []
    })
}

/** Null for what cannot be reached, such as a link to itself. */
function statsOf(path: string): Stats | null {
  try {
    return statSync(path)
  } catch {
    return null
  }
}

function listNames(folder: string): string[] | null {
  try {
    return readdirSync(folder)
  } catch {
    return null
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}

function refuse(place: string, content: string): FoundSession {
  return { place, name: nameOf(place), webhookUrl: null, writtenAt: null, otherClients: null, content }
}

function nameOf(folder: string): string {
  return basename(resolve(folder))
}
