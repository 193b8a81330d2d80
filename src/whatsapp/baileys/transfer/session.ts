import type { AuthenticationCreds } from 'baileys'
import { numberOf } from '../addresses.ts'
import { flawOf, isPair } from './check-credentials.ts'
import { type KeyType, keyFileName, parseKeyName, parseValue, usableKey, writeValue } from './session-values.ts'

/** A row of `Credentials`. */
export interface SessionRow {
  type: string
  id: string
  value: Uint8Array
}

/** A linked session of Baileys, read from another program. */
export interface Session {
  /** Digits only. */
  phone: string
  /** The name that the owner has given the account. Null if it is unknown. */
  pushName: string | null
  rows: SessionRow[]
  /** The number of keys that were read. Device lists that were added do not count. */
  keys: number
  /** The number of keys that could not be read and are left out. WhatsApp and contacts replace them when needed. */
  unreadable: number
}

/** The session cannot be used. The message says why. */
export class UnusableSession extends Error {
  override readonly name = 'UnusableSession'
}

/** A stored value: its name (`creds`, or `<type>-<id>`) and its JSON. Null: it could not be read. */
export interface StoredValue {
  name: string
  json: string | null
}

const CREDS = 'creds'
const CREDS_ROW = { type: CREDS, id: CREDS } as const
/** Rows that Pombal keeps beside Baileys' keys. Other programs have no use for them. */
const OWN_TYPES: ReadonlySet<string> = new Set(['devices', 'journal', 'journal-large'])

/**
 * Reads a session that Baileys 6.7 or 7 has stored, and checks what can be checked without logging in.
 * @throws UnusableSession
 */
export function readSession(values: Iterable<StoredValue>): Session {
  let creds: AuthenticationCreds | undefined
  const keys = new Map<string, { type: KeyType; id: string; value: unknown }>()
  let unreadable = 0
  for (const { name, json } of values) {
    if (name === CREDS) {
      creds = parseCreds(json)
      continue
    }
    const place = parseKeyName(name)
    if (place === null) continue
    const value = storedValue(place.type, json)
    if (value === undefined) unreadable += 1
    else if (value !== null) keys.set(`${place.type}/${place.id}`, { ...place, value })
  }
  if (creds === undefined) throw new UnusableSession('It holds no credentials (creds).')
  const flaw = flawOf(creds) ?? flawOfCounter(creds, [...keys.values()])
  if (flaw !== null) throw new UnusableSession(flaw)
  const stored = [...keys.values(), ...missingDeviceLists([...keys.values()])]
  const rows = stored.map(({ type, id, value }) => ({ type, id, value: Buffer.from(writeValue(value)) }))
  return {
    phone: numberOf(creds.me?.id)!,
    pushName: creds.me?.name ?? null,
    rows: [{ ...CREDS_ROW, value: Buffer.from(writeValue(creds)) }, ...rows],
    keys: keys.size,
    unreadable,
  }
}

/** @returns the session, or the sentence that says why it cannot be used */
export function tryToReadSession(values: Iterable<StoredValue>): Session | string {
  try {
    return readSession(values)
  } catch (error) {
    if (error instanceof UnusableSession) return error.message
    throw error
  }
}

/** The files of the folder that Baileys' `useMultiFileAuthState` reads. */
export function* writeSession(rows: Iterable<SessionRow>): Generator<{ name: string; json: string }> {
  for (const { type, id, value } of rows) {
    if (OWN_TYPES.has(type)) continue
    const name = type === CREDS ? `${CREDS}.json` : keyFileName(type, id)
    yield { name, json: Buffer.from(value).toString() }
  }
}

function parseCreds(json: string | null): AuthenticationCreds {
  try {
    if (json) return serializable(parseValue(json)) as AuthenticationCreds
  } catch {}
  throw new UnusableSession('Its credentials (creds) are empty or were cut off while they were written.')
}

/** Undefined: unreadable. Null: deleted. */
function storedValue(type: KeyType, json: string | null): unknown {
  if (json === null) return undefined
  try {
    const value = parseValue(json)
    return value === null ? null : (serializable(usableKey(type, value, isPair)) ?? undefined)
  } catch {
    return undefined
  }
}

/** With a counter that is too low, Baileys would give the number of an existing pre-key to a new pre-key. */
function flawOfCounter({ nextPreKeyId }: AuthenticationCreds, keys: readonly { type: string; id: string }[]) {
  const highest = keys.reduce((max, { type, id }) => (type === 'pre-key' ? Math.max(max, Number(id) || 0) : max), 0)
  if (typeof nextPreKeyId === 'number' && nextPreKeyId > highest) return null
  return 'The credentials are older than its keys: they were cut off or come from a copy.'
}

/** Baileys 7 uses these lists to move the sessions of a number to its LID. Baileys 6 does not have them. */
function missingDeviceLists(keys: readonly { type: KeyType; id: string }[]) {
  if (keys.some(({ type }) => type === 'device-list')) return []
  const devices = new Map<string, string[]>()
  for (const { type, id } of keys) {
    const [, user, device] = (type === 'session' && /^(\d+)\.(\d+)$/.exec(id)) || []
    if (user === undefined || device === undefined) continue
    devices.set(user, [...(devices.get(user) ?? []), device])
  }
  return Array.from(devices, ([id, value]) => ({ type: 'device-list' as const, id, value }))
}

/** Returns the value unchanged. @throws if it cannot be written as JSON */
function serializable<T>(value: T): T {
  writeValue(value)
  return value
}
