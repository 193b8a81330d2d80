import { proto, type WASocket } from 'baileys'
import type { RestrictionNotice } from '../../domain/restriction.ts'

/** What tells how an account and its socket are doing. */
export interface VitalSigns {
  /** WhatsApp has sent something, whatever it is. */
  frame(): void
  /** A message came that could not be decrypted; mostly its sender sends it again. */
  undecryptable(): void
  /** WhatsApp says whether the account may write to somebody new. */
  restriction(notice: RestrictionNotice): void
}

export function watchVitalSigns({ ev, ws }: WASocket, signs: VitalSigns): void {
  ws.on('frame', () => signs.frame())
  ev.on('messages.upsert', ({ messages }) => {
    for (const { messageStubType } of messages) {
      if (messageStubType === proto.WebMessageInfo.StubType.CIPHERTEXT) signs.undecryptable()
    }
  })
  ev.on('connection.update', ({ reachoutTimeLock }) => {
    if (!reachoutTimeLock) return
    const { isActive, timeEnforcementEnds } = reachoutTimeLock
    signs.restriction({ active: isActive === true, until: timeEnforcementEnds?.getTime() ?? null })
  })
}
