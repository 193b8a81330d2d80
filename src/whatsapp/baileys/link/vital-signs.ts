import type { WASocket } from 'baileys'
import type { RestrictionNotice } from '../../../domain/restriction.ts'

/** Events that indicate the health of an account and its socket. */
export interface VitalSigns {
  frame(): void
  /** A delivered message could not be decrypted. Usually its sender sends it again. Reported with the retry request. */
  undecryptable(): void
  /** WhatsApp reports whether the account may write to strangers. */
  restriction(notice: RestrictionNotice): void
}

export function watchVitalSigns({ ev, ws }: WASocket, signs: VitalSigns): void {
  ws.on('frame', () => signs.frame())
  ev.on('connection.update', ({ reachoutTimeLock }) => {
    if (!reachoutTimeLock) return
    const { isActive, timeEnforcementEnds } = reachoutTimeLock
    signs.restriction({ active: isActive === true, until: timeEnforcementEnds?.getTime() ?? null })
  })
}
