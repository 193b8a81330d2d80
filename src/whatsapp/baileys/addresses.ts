import { isHostedLidUser, isHostedPnUser, isLidUser, isPnUser, jidDecode } from 'baileys'
import type { OwnAddresses } from '../../domain/recipients/group.ts'

/** The user part of a JID, without device and server. Undefined if it is not a JID. */
export function userOf(jid: string | null | undefined): string | undefined {
  return (jid && jidDecode(jid)?.user) || undefined
}

/** The phone number in a JID, digits only. Undefined for a LID, a group or nothing. */
export function numberOf(jid: string | null | undefined): string | undefined {
  return jid && (isPnUser(jid) || isHostedPnUser(jid)) ? userOf(jid) : undefined
}

/** The digits of a LID. Undefined for anything else. */
export function lidOf(jid: string | null | undefined): string | undefined {
  return jid && (isLidUser(jid) || isHostedLidUser(jid)) ? userOf(jid) : undefined
}

/** True if the user part of a JID has the form of a number or a LID. Contacts choose some JIDs, with any content and length. */
export function isWellFormed(jid: string): boolean {
  return /^\d{1,20}$/.test(userOf(jid) ?? '')
}

/** The LID address in a JID, without the device. Null for anything else. */
export function lidAddressOf(jid: string | null | undefined): string | null {
  const lid = lidOf(jid)
  return lid === undefined ? null : `${lid}@lid`
}

/** The addresses of our account: the number and, usually, the LID. */
export interface Self {
  id?: string | undefined
  lid?: string | undefined
}

export function ownAddresses({ id, lid }: Self): OwnAddresses {
  return { phone: numberOf(id) ?? null, lid: lidAddressOf(lid) }
}

/** True if a JID is one of ours, by number or by LID, on any device. */
export function isSelf(jid: string | null | undefined, self: Self): boolean {
  const user = userOf(jid)
  return user !== undefined && (user === userOf(self.id) || user === userOf(self.lid))
}

/** True for 127.0.0.0/8, ::1 and localhost. */
export function isLoopback(url: URL): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
