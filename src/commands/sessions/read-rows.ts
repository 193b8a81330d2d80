import { readFileSync, statSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { type StoredValue, tryToReadSession } from '../../whatsapp/baileys/transfer/session.ts'
import { type FoundSession, readKeys } from './read-folder.ts'

/** A row of another program's database, or of a file with the result of a query. docs/migrating.md has the queries. */
export interface Row {
  /** The ID of the session. */
  session: string
  /** `creds`, or `<type>-<id>`. */
  key: string
  value: unknown
  name?: unknown
  webhook?: unknown
}

/** Node reads no text of more than 512 MiB. */
const MAX_BYTES = 256 * 1024 * 1024

interface Found {
  /** By key. If there are several, the last one counts. */
  values: Map<string, StoredValue>
  name: string
  webhookUrl: string | null
}

/**
 * The sessions in a file with rows of a database: a JSON object on each line, or one object with a field for each row (the answer of
 * `redis-cli --json HGETALL`).
 * @param keysFolder contains a folder of keys for each session, named by its ID, as Evolution writes them
 */
export function findInFile(file: string, keysFolder: string | null): FoundSession[] {
  const rows = readRows(file)
  if (rows === null)
    return [refuse(file, 'It is neither a folder nor a file with rows of a database, of at most 256 MiB.')]
  return sessionsOf(rows, file, keysFolder)
}

/** @param place where the rows are from: a file, or the other program */
export function sessionsOf(rows: readonly Row[], place: string, keysFolder: string | null): FoundSession[] {
  const sessions = new Map<string, Found>()
  for (const { session, key, value, name, webhook } of rows) {
    const found = sessions.get(session) ?? { values: new Map(), name: session, webhookUrl: null }
    if (value !== null && value !== undefined) found.values.set(key, { name: key, json: jsonOf(value) })
    if (typeof name === 'string' && name !== '') found.name = name
    found.webhookUrl ??= webhookUrlOf(webhook)
    sessions.set(session, found)
  }
  return Array.from(sessions, ([session, { values, ...found }]) => {
    const keys = keysFolder === null || !isFolderName(session) ? null : readKeys(join(keysFolder, session))
    const all = [...(keys?.values ?? []), ...values.values()]
    return {
      place: `${place} (${session})`,
      ...found,
      writtenAt: keys?.writtenAt ?? null,
      otherClients: null,
      content: tryToReadSession(all),
    }
  })
}

/** Whether a folder of this name is directly inside its parent. */
function isFolderName(name: string): boolean {
  return name === basename(name) && !name.includes('\\') && name !== '.' && name !== '..' && !name.includes('\0')
}

export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}

function readRows(file: string): Row[] | null {
  if (statSync(file).size > MAX_BYTES) return null
  const text = readFileSync(file, 'utf8')
  const whole = parse(text)
  if (isRecord(whole) && 'creds' in whole) {
    const session = basename(file, extname(file))
    return Object.entries(whole).map(([key, value]) => ({ session, key, value }))
  }
  const lines = text.split('\n').filter(line => line.trim() !== '')
  const rows = lines.map(parse)
  return rows.length > 0 && rows.every(isRow) ? rows : null
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/**
 * A text column contains the JSON of the value. A JSON column contains the value itself, possibly a text such as a LID.
 * @returns null if it cannot be read: it is nested too deeply
 */
function jsonOf(value: unknown): string | null {
  if (typeof value === 'string' && /^\s*["{[]/.test(value)) return value
  try {
    return JSON.stringify(value)
  } catch {
    return null
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isRow(value: unknown): value is Row {
  return isRecord(value) && typeof value['session'] === 'string' && typeof value['key'] === 'string'
}

function webhookUrlOf(value: unknown): string | null {
  const url = typeof value === 'string' ? URL.parse(value) : null
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : null
}

function refuse(place: string, content: string): FoundSession {
  return { place, name: basename(place), webhookUrl: null, writtenAt: null, otherClients: null, content }
}
