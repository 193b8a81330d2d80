import type { InstanceId } from '../../domain/ids.ts'
import type { PhoneNumber } from '../../domain/recipients/recipient.ts'

export const MAX_HANDOUTS = 10
export const PAIRING_CODES_PER_HANDOUT = 3
/** The shortest time between two requests of one link for a code. */
export const HANDOUT_PAUSE_MS = 10_000

/** A link that lets somebody who cannot sign in link a number to one instance. */
export interface Handout {
  id: string
  instanceId: InstanceId
  /** The heading that the person who opens the link sees. */
  title: string | null
  returnUrl: string | null
  createdAt: number
  expiresAt: number
  /** When the link was bound to a browser. */
  openedAt: number | null
  pairingCodesLeft: number
  /** When a number was linked, which ends the link. */
  usedAt: number | null
}

export interface NewHandout extends Pick<Handout, 'id' | 'instanceId' | 'title' | 'returnUrl'> {
  /** SHA-256 of the link's token. */
  digest: Uint8Array
  lastsMs: number
  /** The account that creates it: once it may not create links of the instance any more, nobody can use this one. Null: none. */
  createdBy: string | null
}

/** The token of a link, and the cookie of the browser that presents it, as digests. */
export interface HandoutKey {
  digest: Uint8Array
  browser: Uint8Array
}

/** `none`: the link was used or revoked, has expired or never existed, or its creator may no longer create it. `in_use`: another browser has opened it. */
export type FoundHandout = { kind: 'found'; handout: Handout } | { kind: 'in_use' } | { kind: 'none' }

/** `under_way`: the link is bound to this browser, and a QR code is already requested. Nothing changed. */
export type HandoutRequest =
  | { kind: 'requested' }
  | { kind: 'under_way' }
  | { kind: 'none' | 'in_use' | 'linked' | 'codes_spent' }
  | { kind: 'too_soon'; waitMs: number }

export interface Handouts {
  /** `full`: there are `MAX_HANDOUTS` open links. `linked`: there is a number. Null if there is no such instance. */
  create(handout: NewHandout, now: number): Promise<Handout | 'full' | 'linked' | null>
  /** Newest first, including used links and those that expired less than a day ago. Null if there is no such instance. */
  list(instanceId: InstanceId): Promise<Handout[] | null>
  /**
   * Takes effect immediately. If the link's last request is still under way, that request ends in the same commit.
   * False if there is no such link.
   */
  revoke(instanceId: InstanceId, id: string): Promise<boolean>
  /** Ends the requests of expired links that are still under way. */
  endExpired(): Promise<void>
  /** Changes nothing. A used link is found only by its own browser, until the link expires. */
  find(key: HandoutKey): Promise<FoundHandout>
  /**
   * Binds the link to the browser, and requests a QR code or, for `phone`, a pairing code, in one commit. `linked`: the
   * number is linked already. If a QR code is already under way, the link is only bound, or if it was bound before,
   * nothing changes.
   */
  request(key: HandoutKey, phone: PhoneNumber | null): Promise<HandoutRequest>
}
