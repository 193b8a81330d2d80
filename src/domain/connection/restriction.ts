/**
 * A temporary WhatsApp limit: the number cannot start new conversations (error 463; Baileys' "reachout time lock").
 * Contacts still get messages. Times are milliseconds since 1970.
 */
export interface Restriction {
  since: number
  until: number
  /** Whether WhatsApp reported `until`. Otherwise `until` is `ASSUMED_RESTRICTION_MS` after the last refusal. */
  reportedByWhatsapp: boolean
}

/** A report from WhatsApp; `until` is null if it names no end. */
export interface RestrictionNotice {
  active: boolean
  until: number | null
}

/** The assumed length of a restriction whose end WhatsApp does not report. Retries are rare: each counts against the number. */
export const ASSUMED_RESTRICTION_MS = 10 * 60_000

export function isInForce(restriction: Restriction | null, now: number): restriction is Restriction {
  return restriction !== null && now < restriction.until
}

export function afterRefusal(restriction: Restriction | null, now: number): Restriction {
  const assumed = { since: now, until: now + ASSUMED_RESTRICTION_MS, reportedByWhatsapp: false }
  if (!isInForce(restriction, now)) return assumed
  return restriction.until >= assumed.until ? restriction : { ...assumed, since: restriction.since }
}

/**
 * The restriction after a report from WhatsApp. A report of "none" ends a reported restriction, but not an assumed one:
 * 463 has other causes too, and WhatsApp would refuse the next message to a stranger again.
 */
export function afterNotice(
  restriction: Restriction | null,
  notice: RestrictionNotice,
  now: number,
): Restriction | null {
  const current = isInForce(restriction, now) ? restriction : null
  if (!notice.active) return current?.reportedByWhatsapp ? null : current
  if (notice.until === null) return afterRefusal(current, now)
  const since = current?.since ?? now
  return notice.until > now ? { since, until: notice.until, reportedByWhatsapp: true } : null
}
