import { isHostedLidUser, isHostedPnUser, isLidUser, isPnUser, jidDecode } from 'baileys'

/** The user part of a JID, without device and server; undefined for what is no JID. */
export function userOf(jid: string | null | undefined): string | undefined {
  return (jid && jidDecode(jid)?.user) || undefined
}

/** The phone number that a JID holds, digits only; undefined for a LID, a group or nothing. */
export function numberOf(jid: string | null | undefined): string | undefined {
  return jid && (isPnUser(jid) || isHostedPnUser(jid)) ? userOf(jid) : undefined
}

/** The digits of a LID; undefined for anything else. */
export function lidOf(jid: string | null | undefined): string | undefined {
  return jid && (isLidUser(jid) || isHostedLidUser(jid)) ? userOf(jid) : undefined
}

/** An account as it is known on WhatsApp: by number and, mostly, by LID. */
export interface Self {
  id?: string | undefined
  lid?: string | undefined
}

/** Whether a JID is one of our own, whichever way it is addressed and whatever the device. */
export function isSelf(jid: string | null | undefined, self: Self): boolean {
  const user = userOf(jid)
  return user !== undefined && (user === userOf(self.id) || user === userOf(self.lid))
}

/** 127.0.0.0/8, ::1 or localhost, as a URL's host name has them. */
export function isLoopback(url: URL): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
