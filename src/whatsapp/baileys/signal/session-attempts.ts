import { SessionCipher } from 'libsignal'

/** A session of libsignal's; its types keep it to themselves. */
interface Session {
  serialize(): unknown
  constructor: { deserialize(kept: unknown): Session }
}

interface Cipher {
  decryptWithSessions(data: Uint8Array, sessions: Session[]): Promise<unknown>
}

let patched = false

/**
 * Mends libsignal 6.0.0 (`session_cipher.js`): it tries a message on each session with a contact until one fits, and turns
 * the ratchet of a session before it knows whether the message is that session's. The turned ones are stored with the one that
 * fits, and nothing that comes over them can be decrypted any more ("Bad MAC", "No matching sessions"). There are two as
 * soon as both sides write first at the same time. Here a session on which a message fails is put back as it was.
 */
export function keepSessionsWhole(): void {
  if (patched) return
  patched = true
  const cipher = SessionCipher.prototype as unknown as Cipher
  const decrypt = cipher.decryptWithSessions
  cipher.decryptWithSessions = async function (data, sessions) {
    // What fails on the only session is not stored.
    if (sessions.length < 2) return decrypt.call(this, data, sessions)
    let failure: unknown
    for (const session of sessions) {
      const before = session.serialize()
      try {
        return await decrypt.call(this, data, [session])
      } catch (error) {
        failure = error
        putBack(session, before)
      }
    }
    throw failure
  }
}

function putBack(session: Session, before: unknown): void {
  for (const field of Object.keys(session)) Reflect.deleteProperty(session, field)
  Object.assign(session, session.constructor.deserialize(before))
}
