/**
 * WhatsApp lets the number write to nobody new for a time (error 463; Baileys' "reachout time lock"). Who wrote to it, or
 * was written to before, still gets messages. Moments are milliseconds since 1970.
 */
export interface Restriction {
  since: number
  until: number
  /** WhatsApp said until when; otherwise we wait for a while and try again. */
  told: boolean
}

/** What WhatsApp says about it; `until` is null where it does not say until when. */
export interface RestrictionNotice {
  active: boolean
  until: number | null
}

/** How long nobody new is written to when WhatsApp does not say until when: each try counts against the number. */
export const UNTOLD_RESTRICTION_MS = 10 * 60_000

export function isInForce(restriction: Restriction | null, now: number): restriction is Restriction {
  return restriction !== null && now < restriction.until
}

/** After a message was refused with 463. */
export function afterRefusal(restriction: Restriction | null, now: number): Restriction {
  const untold = { since: now, until: now + UNTOLD_RESTRICTION_MS, told: false }
  if (!isInForce(restriction, now)) return untold
  return restriction.until >= untold.until ? restriction : { ...untold, since: restriction.since }
}

/**
 * After WhatsApp told how things stand. That there is no such lock ends what it had told of, but not what follows
 * from a refusal: 463 has other causes too, and the next stranger would be refused as well.
 */
export function afterNotice(
  restriction: Restriction | null,
  notice: RestrictionNotice,
  now: number,
): Restriction | null {
  const held = isInForce(restriction, now) ? restriction : null
  if (!notice.active) return held?.told ? null : held
  const since = held?.since ?? now
  if (notice.until === null) return afterRefusal(held, now)
  return notice.until > now ? { since, until: notice.until, told: true } : null
}
