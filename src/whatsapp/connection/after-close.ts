import { type ConnectionCause, RECONNECTING_MS } from '../../domain/connection/connection.ts'
import { backoffMs } from '../../kit/backoff.ts'
import { isProxyFailure, PROXY_FAILURES } from '../../outbound/proxy/proxy-failed.ts'
import { LIBRARY_BROKE, type LinkEnd, NOT_CAUGHT_UP, NOT_REACHED, NOT_RECORDED } from '../baileys/link-end.ts'
import { linkingFailure, UNFINISHED } from './linking-failures.ts'

/**
 * The reaction to the end of a socket.
 *
 * - `restart`: WhatsApp asked for a new socket, as after linking. It opens at once.
 * - `retry`: the network or the server failed. A new socket opens after an exponential backoff with jitter. With
 *   `slow`, the first pause is longer.
 * - `stop`: another attempt would fail or do harm, so a person has to act. The credentials stay.
 * - `logged_out`: the phone removed this device. Only this erases the credentials.
 */
type AfterClose =
  | { kind: 'restart' }
  | { kind: 'retry'; cause: ConnectionCause; reason: string; slow?: true }
  | { kind: 'stop'; cause: ConnectionCause; reason: string }
  | { kind: 'logged_out' }

/**
 * All known close codes (Baileys `DisconnectReason`; WhatsApp's `<failure reason>`; whatsmeow's names for them). Any other
 * code is a `retry`.
 */
const AFTER_CLOSE: Readonly<Record<number, AfterClose>> = {
  515: { kind: 'restart' },
  401: { kind: 'logged_out' },
  402: {
    kind: 'stop',
    cause: 'banned',
    reason: 'WhatsApp has banned the number temporarily. Check the phone, then connect again.',
  },
  403: {
    kind: 'stop',
    cause: 'banned',
    reason: 'WhatsApp refused the number, which may be banned. Check the phone, then connect again.',
  },
  405: {
    kind: 'stop',
    cause: 'version_refused',
    reason:
      'WhatsApp refused this version of WhatsApp Web. Set WHATSAPP_VERSION to a current one (such as 2.3000.1043857760), ' +
      'restart, and connect again.',
  },
  406: {
    kind: 'stop',
    cause: 'login_refused',
    reason: 'WhatsApp refused the login. Check the phone, then connect again.',
  },
  409: {
    kind: 'stop',
    cause: 'version_refused',
    reason: 'WhatsApp refused this client as unknown. Set WHATSAPP_VERSION, restart, and connect again.',
  },
  411: {
    kind: 'stop',
    cause: 'no_linked_devices',
    reason: 'The phone does not support linked devices. Update WhatsApp on it, then connect again.',
  },
  440: {
    kind: 'stop',
    cause: 'replaced',
    reason: 'The connection was opened elsewhere with the same credentials. Close it there, then connect again.',
  },
  408: { kind: 'retry', cause: 'no_answer', reason: 'WhatsApp did not answer in time.' },
  428: { kind: 'retry', cause: 'cut', reason: 'The connection to WhatsApp was cut.' },
  500: { kind: 'retry', cause: 'ended', reason: 'WhatsApp ended the connection without saying why.' },
  503: { kind: 'retry', cause: 'unavailable', reason: 'WhatsApp is not available right now.', slow: true },
  516: { kind: 'retry', cause: 'new_connection_asked', reason: 'WhatsApp asked for a new connection.' },
  [LIBRARY_BROKE]: {
    kind: 'retry',
    cause: 'ended',
    reason: 'The connection ended because of an error in the WhatsApp library.',
  },
  [NOT_RECORDED]: {
    kind: 'retry',
    cause: 'not_recorded',
    reason: 'An incoming message or receipt could not be recorded. WhatsApp will deliver it again.',
  },
  [NOT_CAUGHT_UP]: {
    kind: 'retry',
    cause: 'not_caught_up',
    reason: 'WhatsApp did not deliver all messages that it had kept.',
  },
}

export function afterClose(end: LinkEnd): AfterClose {
  if (end.deviceRemoved) return { kind: 'logged_out' }
  if (end.code === NOT_REACHED && isProxyFailure(end.systemCode)) {
    return { kind: 'retry', cause: 'proxy_failed', reason: PROXY_FAILURES[end.systemCode] }
  }
  if (end.code === NOT_REACHED) {
    return { kind: 'retry', cause: 'unreachable', reason: `WhatsApp could not be reached (${end.systemCode}).` }
  }
  const unknown = `WhatsApp ended the connection (code ${end.code}).`
  return AFTER_CLOSE[end.code] ?? { kind: 'retry', cause: 'ended', reason: unknown }
}

/** More consecutive restarts than this are a loop and get the backoff of a failure. */
const MAX_RESTARTS = 5
const MAX_LINKING_FAILURES = 5
const KEEPS_ASKING = {
  cause: 'new_connection_asked',
  reason: 'WhatsApp keeps asking for a new connection.',
} as const

/** The facts that, besides the close code, decide the next step. */
export interface Situation {
  linked: boolean
  /** The linked account has not connected yet. */
  isFirstLogin: boolean
  /** The last code shown has expired. */
  codesRanOut: boolean
  /** The sandbox's phone scans or enters the code, so nobody has to request a new one. */
  linksItself: boolean
  /** Failures in a row before this end. A connection that lasted resets both counts. */
  failures: number
  /** Restarts in a row before this end. */
  restarts: number
}

export type NextStep =
  | { kind: 'restart' }
  | { kind: 'pause'; state: 'linking' | 'reconnecting'; cause: ConnectionCause; reason: string; slow: boolean }
  | { kind: 'rest'; state: 'unlinked' | 'stopped'; cause: ConnectionCause; reason: string }
  | LoggedOut

export interface LoggedOut {
  kind: 'logged_out'
  cause: ConnectionCause
  reason: string
}

const BY_PHONE: LoggedOut = { kind: 'logged_out', cause: 'logged_out_by_phone', reason: 'Logged out from the phone.' }

export function nextStep(end: LinkEnd, situation: Situation): NextStep {
  const { linked, isFirstLogin, failures, restarts, linksItself } = situation
  const after = afterClose(end)
  if (after.kind === 'stop') {
    const { cause, reason } = after
    return { kind: 'rest', state: linked ? 'stopped' : 'unlinked', cause, reason }
  }
  const { cause, reason } = after.kind === 'retry' ? after : KEEPS_ASKING
  if (linked) {
    if (after.kind === 'logged_out') return isFirstLogin ? { kind: 'logged_out', ...UNFINISHED } : BY_PHONE
    if (after.kind === 'restart' && restarts < MAX_RESTARTS) return after
    return { kind: 'pause', state: 'reconnecting', cause, reason, slow: after.kind === 'retry' && after.slow === true }
  }
  const failure = linkingFailure(end, after.kind === 'logged_out', failures)
  if (!linksItself && failure) return { kind: 'rest', state: 'unlinked', ...failure }
  if (!linksItself && situation.codesRanOut) {
    return {
      kind: 'rest',
      state: 'unlinked',
      cause: 'code_expired',
      reason:
        'Nobody linked the number in time. The phone must be online. If it said that it could not link a device, read its ' +
        'message: it may have too many linked devices. Then connect again for a new code.',
    }
  }
  if (!linksItself && failures >= MAX_LINKING_FAILURES) {
    if (cause === 'proxy_failed')
      return { kind: 'rest', state: 'unlinked', cause, reason: `${reason} Then connect again.` }
    return {
      kind: 'rest',
      state: 'unlinked',
      cause: 'unreachable',
      reason: 'WhatsApp could not be reached to link the number. Connect again.',
    }
  }
  return { kind: 'pause', state: 'linking', cause, reason, slow: false }
}

const FIRST_PAUSE_MS = 1_000
const SLOW_FIRST_PAUSE_MS = 10_000
const LONGEST_PAUSE_MS = RECONNECTING_MS

/**
 * The pause before the next socket, in milliseconds. It doubles up to 5 minutes and is shortened at random by up to half,
 * so instances that were cut at the same moment do not reconnect at the same moment.
 * @param failures failures in a row, including the latest, from 1
 * @param random from 0 to 1
 */
export function pauseBefore(failures: number, slow: boolean, random: number): number {
  const fullMs = backoffMs(failures - 1, slow ? SLOW_FIRST_PAUSE_MS : FIRST_PAUSE_MS, LONGEST_PAUSE_MS)
  return fullMs * (0.5 + random / 2)
}
