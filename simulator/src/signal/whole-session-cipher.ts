import { SessionCipher } from 'libsignal'

/** A libsignal session, which libsignal's types omit. */
interface Session {
  serialize(): unknown
  constructor: { deserialize(serialized: unknown): Session }
}

type Decrypt = (data: Uint8Array, sessions: Session[]) => Promise<unknown>

/**
 * libsignal 6.0.0 tries a message with each session until one matches. On the way it advances the ratchets of the others and
 * stores them, so the peer can no longer decrypt messages of those sessions. A real phone does not do this. This class
 * restores each session that does not match.
 */
export class WholeSessionCipher extends SessionCipher {
  protected async decryptWithSessions(data: Uint8Array, sessions: Session[]): Promise<unknown> {
    const { decryptWithSessions } = SessionCipher.prototype as unknown as { decryptWithSessions: Decrypt }
    let failure: unknown = new Error('no session')
    for (const session of sessions) {
      const before = session.serialize()
      try {
        return await decryptWithSessions.call(this, data, [session])
      } catch (error) {
        failure = error
        restoreSession(session, before)
      }
    }
    throw failure
  }
}

function restoreSession(session: Session, before: unknown): void {
  for (const field of Object.keys(session)) Reflect.deleteProperty(session, field)
  Object.assign(session, session.constructor.deserialize(before))
}
