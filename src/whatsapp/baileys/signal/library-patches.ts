import crypto, { createSecretKey } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { SenderKeyRecord, SenderKeyState } from 'baileys/lib/Signal/Group/index.js'
import { SessionCipher, SessionRecord } from 'libsignal'
import { BoundedMap } from '../../../kit/bounded-map.ts'

/** Records of all connections of a thread. Each takes a few KB. */
const MAX_RECORDS = 1_000

const TAKING_KEYS = ['createHmac', 'createCipheriv', 'createDecipheriv'] as const
type TakesKey = (algorithm: string, key: unknown, ...others: unknown[]) => unknown

/** A session of libsignal, which is missing in its types. */
interface Session {
  serialize(): unknown
  constructor: { deserialize(serialized: unknown): Session }
}

interface Cipher {
  decryptWithSessions(data: Uint8Array, sessions: Session[]): Promise<unknown>
}

let patched = false

/** Fixes defects of libsignal and Baileys, and keeps parsed sessions. Once in each thread, before sessions are used. */
export function patchLibraries(): void {
  if (patched) return
  patched = true
  restoreFailedSessions()
  keepSenderKeysWhole()
  keepParsedSessions()
}

/**
 * Fixes a defect of libsignal 6.0.0 (`session_cipher.js`). libsignal tries a message with each session of a contact, and
 * advances the session's ratchet before it knows that the message belongs to the session. The wrongly advanced sessions
 * are stored, and their later messages cannot be decrypted ("Bad MAC", "No matching sessions"). A contact has two
 * sessions as soon as both sides write first at the same time. The fix restores each session that failed to decrypt.
 */
function restoreFailedSessions(): void {
  const cipher = SessionCipher.prototype as unknown as Cipher
  const decrypt = cipher.decryptWithSessions
  cipher.decryptWithSessions = async function (data, sessions) {
    // A failure on the only session is not stored.
    if (sessions.length < 2) return decrypt.call(this, data, sessions)
    let failure: unknown
    for (const session of sessions) {
      const before = session.serialize()
      try {
        return await decrypt.call(this, data, [session])
      } catch (error) {
        failure = error
        restore(session, before)
      }
    }
    throw failure
  }
}

function restore(session: Session, before: unknown): void {
  for (const field of Object.keys(session)) Reflect.deleteProperty(session, field)
  Object.assign(session, session.constructor.deserialize(before))
}

/**
 * Fixes two defects of Baileys 7, because of which group messages that arrive out of order cannot be decrypted.
 *
 * `sender-key-record.js`: each message that was requested again contains the member's sender key again. Baileys adds it as a
 * new state, and the sixth state evicts the first one, which has the position of the chain and the keys of skipped messages.
 * Here, as in libsignal's own implementation, a known key is left unchanged.
 *
 * `sender-key-state.js`: the stored keys of skipped messages are read as plain objects. Here they become Buffers again.
 */
function keepSenderKeysWhole(): void {
  const add = SenderKeyRecord.prototype.addSenderKeyState
  SenderKeyRecord.prototype.addSenderKeyState = function (id, iteration, chainKey, signatureKey) {
    const known = this.getSenderKeyState(id)
    if (known && Buffer.from(known.getSigningKeyPublic()).equals(signatureKey)) return
    add.call(this, id, iteration, chainKey, signatureKey)
  }
  const remove = SenderKeyState.prototype.removeSenderMessageKey
  SenderKeyState.prototype.removeSenderMessageKey = function (iteration) {
    const kept = this.getStructure().senderMessageKeys.find(key => key.iteration === iteration)
    if (kept) kept.seed = Buffer.from(kept.seed)
    return remove.call(this, iteration)
  }
}

/**
 * Keeps each record that libsignal stores, so that the next operation on this contact need not parse it. In libsignal 6.0.0, each
 * message parses the session that the previous message stored. While an instance sends as fast as it can, parsing takes
 * a tenth of its thread's time and a fifth of the memory that the thread allocates.
 *
 * An operation that reads a record removes it from the cache, and an operation that stores it puts it back. If an
 * operation changes the record and fails, the next operation parses the stored record.
 */
function keepParsedSessions(): void {
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
  for (const { registrationId, indexInfo } of Object.values((stored as StoredRecord)._sessions ?? {}))
    if (indexInfo.closed === -1) return typeof registrationId === 'number'
  return false
}

const withKeyObjects = new WeakSet<object>()

/**
 * Converts keys given as bytes to key objects before `node:crypto` sees them. For a key given as bytes, Node 24 throws and
 * catches two exceptions (`isKeyObject` and `isCryptoKey` in `internal/crypto/keys`). Without this patch, libsignal takes
 * two and a half times as long to encrypt or decrypt a message (0.23 ms instead of 0.09 ms).
 */
export function passKeysAsObjects(target: object = crypto): void {
  if (withKeyObjects.has(target)) return
  withKeyObjects.add(target)
  const functions = target as Record<(typeof TAKING_KEYS)[number], TakesKey>
  for (const name of TAKING_KEYS) {
    const original = functions[name]
    functions[name] = (algorithm, key, ...others) =>
      original(algorithm, key instanceof Uint8Array ? createSecretKey(key) : key, ...others)
  }
  // Also updates the functions that modules imported by name.
  syncBuiltinESMExports()
}
