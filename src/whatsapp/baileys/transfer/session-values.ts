import { BufferJSON } from 'baileys'

/** The types of keys that Baileys stores, of all versions from 6.7 on. */
const KEY_TYPES = [
  'app-state-sync-version',
  'app-state-sync-key',
  'sender-key-memory',
  'sender-key',
  'identity-key',
  'device-list',
  'lid-mapping',
  'pre-key',
  'tctoken',
  'session',
] as const
export type KeyType = (typeof KEY_TYPES)[number]

/** Some stores write bytes as an object with a field for each byte. A shorter object may be something else. */
const MIN_INDEXED_BYTES = 16
/** `<group>--<user>--<device>`. A group's ID may contain single hyphens. */
const SENDER_KEY_FILE = /^(.+)--(.+)--(.+)$/

/** The characters that Baileys writes: base64, JIDs and numbers. Databases would change other characters, or refuse longer IDs. */
const ID = /^[\x21-\x7e]{1,200}$/

/**
 * @param name the name of a row, or of a file without its extension
 * @returns null if Baileys does not write keys under this name
 */
export function parseKeyName(name: string): { type: KeyType; id: string } | null {
  const type = KEY_TYPES.find(one => name.startsWith(`${one}-`))
  const id = type && name.slice(type.length + 1)
  return type && id && ID.test(id) ? { type, id: idOf(type, id) } : null
}

/** The name of a key's file, as Baileys writes it. */
export function keyFileName(type: string, id: string): string {
  return `${`${type}-${id}`.replaceAll('/', '__').replaceAll(':', '-')}.json`
}

/** In the names of files Baileys replaces `/` by `__` and `:` by `-`. An ID in its original form is returned unchanged. */
function idOf(type: KeyType, id: string): string {
  if (type === 'app-state-sync-key') return id.replaceAll('__', '/')
  if (type === 'sender-key') return id.replace(SENDER_KEY_FILE, '$1::$2::$3')
  return id
}

/**
 * Reads JSON in every form that gateways use for Baileys' values: bytes as base64, as a list of numbers or as an object with a field
 * for each byte, and JSON inside a JSON string.
 * @throws SyntaxError
 */
export function parseValue(json: string): unknown {
  const value: unknown = JSON.parse(json, reviveBytes)
  return typeof value === 'string' && /^["{[]/.test(value) ? JSON.parse(value, reviveBytes) : value
}

function reviveBytes(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const { type, data } = value as { type?: unknown; data?: unknown }
  if (type === 'Buffer' && typeof data === 'string') return Buffer.from(data, 'base64')
  if (type === 'Buffer' && isBytes(data)) return Buffer.from(data)
  const keys = Object.keys(value)
  const isIndexed = keys.length >= MIN_INDEXED_BYTES && keys.every((key, index) => key === String(index))
  const values: unknown = isIndexed && Object.values(value)
  return isBytes(values) ? Buffer.from(values) : value
}

function isBytes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every(one => Number.isInteger(one) && one >= 0 && one <= 255)
}

/** The value as the JSON that Baileys writes, with bytes as base64. */
export function writeValue(value: unknown): string {
  return JSON.stringify(value, BufferJSON.replacer)
}

/** The value as Baileys 7 expects it. Null if it cannot be used. */
export function usableKey(type: KeyType, value: unknown, isPair: (pair: unknown) => boolean): unknown {
  switch (type) {
    case 'pre-key':
      return isPair(value) ? value : null
    case 'session':
      return isObject(value) && isObject(value['_sessions']) ? value : null
    case 'sender-key':
      // Baileys up to 6.7.18 stores a list of states, later versions the bytes of its JSON.
      if (Array.isArray(value)) return Buffer.from(writeValue(value))
      return value instanceof Uint8Array ? value : null
    case 'identity-key':
      return value instanceof Uint8Array ? value : null
    case 'lid-mapping':
      return typeof value === 'string' && value !== '' ? value : null
    case 'device-list':
      return Array.isArray(value) && value.every(one => typeof one === 'string') ? value : null
    default:
      return isObject(value) ? value : null
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
}
