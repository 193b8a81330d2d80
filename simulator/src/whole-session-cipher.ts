import { SessionCipher } from 'libsignal'

/** A session of libsignal's; its types do not name it. */
interface Session {
  serialize(): unknown
  constructor: { deserialize(kept: unknown): Session }
}

type Decrypt = (data: Uint8Array, sessions: Session[]) => Promise<unknown>

/**
 * libsignal 6.0.0 tries a message on each session until one fits, turns the ratchet of the others on the way, and stores
 * those too: the peer can decrypt nothing that comes over them. A real phone does not. Here a session that does not fit
 * is put back as it was.
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
