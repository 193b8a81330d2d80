import { SessionCipher } from 'libsignal'

/** A session of libsignal, which is missing in its types. */
interface Session {
  serialize(): unknown
  constructor: { deserialize(serialized: unknown): Session }
}

interface Cipher {
  decryptWithSessions(data: Uint8Array, sessions: Session[]): Promise<unknown>
}

let patched = false

/**
 * Fixes a defect of libsignal 6.0.0 (`session_cipher.js`). libsignal tries a message with each session of a contact, and
 * advances the session's ratchet before it knows that the message belongs to the session. The wrongly advanced sessions
 * are stored, and their later messages cannot be decrypted ("Bad MAC", "No matching sessions"). A contact has two
 * sessions as soon as both sides write first at the same time. The fix restores each session that failed to decrypt.
 */
export function restoreFailedSessions(): void {
  if (patched) return
  patched = true
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
