import { SessionRecord } from 'libsignal'
import { BoundedMap } from '../../../kit/bounded-map.ts'

/** Records of all connections of a thread. Each takes a few KB. */
const MAX_RECORDS = 1_000

let patched = false

/**
 * Keeps each record that libsignal stores, so that the next operation on this contact need not parse it. In libsignal 6.0.0, each
 * message parses the session that the previous message stored. While an instance sends as fast as it can, parsing takes
 * a tenth of its thread's time and a fifth of the memory that the thread allocates.
 *
 * An operation that reads a record removes it from the cache, and an operation that stores it puts it back. If an
 * operation changes the record and fails, the next operation parses the stored record.
 */
export function keepParsedSessions(): void {
  if (patched) return
  patched = true
  const parsed = new BoundedMap<object, SessionRecord>(MAX_RECORDS)
  const { deserialize } = SessionRecord
  SessionRecord.deserialize = stored => {
    const record = parsed.get(stored) ?? deserialize.call(SessionRecord, stored)
    parsed.delete(stored)
    return record
  }
  const { serialize } = SessionRecord.prototype
  SessionRecord.prototype.serialize = function () {
    const stored = serialize.call(this)
    parsed.set(stored, this)
    return stored
  }
}

interface StoredRecord {
  _sessions?: Record<string, { registrationId?: number; indexInfo: { closed: number } }>
}

/** The same result as libsignal's `haveOpenSession`, without parsing the record. */
export function hasOpenSession(stored: object): boolean {
  const open = Object.values((stored as StoredRecord)._sessions ?? {}).find(({ indexInfo }) => indexInfo.closed === -1)
  return typeof open?.registrationId === 'number'
}
