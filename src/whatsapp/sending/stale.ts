import { parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Link } from '../baileys/link.ts'

/** WhatsApp's code if a stanza names devices that the recipient no longer has (Baileys `SERVER_ERROR_CODES`). */
export const STALE_DEVICES = 479
/**
 * WhatsApp's code if a stanza to a group names the members by numbers instead of LIDs, or the reverse
 * (`StaleGroupAddressingMode` in WhatsApp Web). It has no known meaning for a message to a person.
 */
export const STALE_ADDRESSING = 421

/** True if WhatsApp refused a message only because the recipient's devices or the group have changed: it is sent again. */
export function isStale(error: number | undefined, address: string | undefined): boolean {
  if (error === STALE_DEVICES) return true
  return error === STALE_ADDRESSING && parseRecipient(address ?? '')?.kind === 'group'
}

/** A message that did not reach its group may have carried the sender key. Only groups have one. */
export function shareKeyAgain(address: string, link: Pick<Link, 'shareKeyAgain'>): void {
  if (parseRecipient(address)?.kind === 'group') link.shareKeyAgain(address)
}
