import type { InstanceEventKind } from '../events/event.ts'
import type { PasskeyStep } from './passkey.ts'
import type { Restriction } from './restriction.ts'

/** The connection states of contract §6. */
export const CONNECTION_STATES = [
  'unlinked',
  'linking',
  'connecting',
  'connected',
  'reconnecting',
  'disconnected',
  'stopped',
  'logged_out',
] as const
export type ConnectionState = (typeof CONNECTION_STATES)[number]

/** The states that an owner may record. `disconnected` is derived: it is `reconnecting` for longer than `RECONNECTING_MS`. */
export type StoredConnectionState = Exclude<ConnectionState, 'disconnected'>

/** How long a linked instance still accepts messages after it lost its socket (contract §3). */
export const RECONNECTING_MS = 5 * 60_000

/**
 * The desired state of a connection, set by the management API. The owner brings the connection to this state.
 * `relinked`: logged out, then online.
 */
export type ConnectionGoal = 'idle' | 'online' | 'logged_out' | 'relinked'

/** The stable code of each reason. */
export const CONNECTION_CAUSES = [
  // No problem.
  'never_linked',
  'linking_interrupted',
  'asking_for_code',
  'scan_qr_code',
  'type_pairing_code',
  'new_code_asked',
  'passkey_sent',
  'passkey_code',
  'first_login',
  'logging_in',
  'connected',
  'logged_out_as_asked',
  'logout_unconfirmed',
  // A person has to link the number again.
  'logged_out_by_phone',
  // Temporary: the service recovers without help.
  'restricted',
  'stopping',
  'owner_gone',
  'cut',
  'no_answer',
  'unavailable',
  'ended',
  'new_connection_asked',
  'not_recorded',
  'not_caught_up',
  'keys_not_stored',
  // A person has to act.
  'banned',
  'version_refused',
  'login_refused',
  'no_linked_devices',
  'replaced',
  'code_expired',
  'passkey_required',
  'passkey_refused',
  'passkey_expired',
  'identity_rejected',
  'linking_unfinished',
  'phone_offline',
  'device_limit',
  'unreachable',
  'proxy_failed',
  'sandbox_off',
  'thread_crashed',
  'imported',
  'exported',
] as const
export type ConnectionCause = (typeof CONNECTION_CAUSES)[number]

/** The causes of a logout that somebody requested. They are not problems. */
export const REQUESTED_LOGOUT = ['logged_out_as_asked', 'logout_unconfirmed'] as const satisfies ConnectionCause[]

/** A code to type on the phone, and the number that it was requested for. */
export interface PairingCode {
  code: string
  phone: string
}

/** An instance's connection as stored. Times are milliseconds since 1970. */
export interface StoredConnection {
  state: StoredConnectionState
  /** A sentence for people. */
  reason: string
  /** The code of `reason`; null in rows from before the codes existed. */
  cause: ConnectionCause | null
  since: number
  goal: ConnectionGoal
  /** Incremented by every request to connect or log out, so that a repeated request is recognised. */
  goalVersion: number
  /** The number to link by pairing code; null: link by QR code. */
  pairingPhone: string | null
  qr: string | null
  qrExpiresAt: number | null
  pairingCode: string | null
  /** What a person has to do while a number is linked with a passkey. */
  passkey: PasskeyStep | null
  /** When the next socket is opened; null unless the connection waits for it. */
  retryAt: number | null
  restriction: Restriction | null
  /** The linked number, digits only. */
  phone: string | null
  /** The last time at which the socket was known to be open. Updated with the owner's lease while connected. */
  lastConnectedAt: number | null
}

/** Derives the present state from the stored one. @param leaseAlive whether any node holds a valid lease */
export function currentState(
  stored: Pick<StoredConnection, 'state' | 'lastConnectedAt'>,
  leaseAlive: boolean,
  now: number,
): ConnectionState {
  const away = stored.state === 'reconnecting' || (stored.state === 'connected' && !leaseAlive)
  if (!away) return stored.state
  return now - (stored.lastConnectedAt ?? 0) < RECONNECTING_MS ? 'reconnecting' : 'disconnected'
}

/** Whether a number is linked. While it is, WhatsApp keeps incoming messages while the instance is offline. */
export function isLinked(state: ConnectionState): boolean {
  return state !== 'unlinked' && state !== 'linking' && state !== 'logged_out'
}

/** Whether a message is accepted in this state (contract §3). */
export function acceptsMessages(state: ConnectionState): boolean {
  return state === 'connected' || state === 'reconnecting'
}

/**
 * Whether a scheduled message is accepted (contract §3). The first login fails messages that were queued before it.
 * @param phone the linked number, known from its first login on
 */
export function acceptsScheduled(state: ConnectionState, phone: string | null): boolean {
  return acceptsMessages(state) || (isLinked(state) && phone !== null)
}

/** The last report about a connection. `unlinked` causes no event, but replaces the previous report, so the next change is reported again. */
export type Reported = InstanceEventKind | 'unlinked'

/**
 * The report that is due for a connection. Null: none, because it would repeat the last one. A reconnection within
 * `RECONNECTING_MS` is not a change, so a connection that flaps causes no events.
 * @param last null if nothing was reported yet
 */
export function connectionEventOf(
  stored: Pick<StoredConnection, 'state' | 'cause' | 'lastConnectedAt'>,
  last: Reported | null,
  now: number,
): Reported | null {
  const shown = reportedAs(stored, currentState(stored, true, now))
  if (shown === null || shown === last) return null
  // An instance that was linked before reports existed: its first report must be a problem.
  if (shown === 'instance.connected' && last === null) return null
  return shown
}

function reportedAs({ cause }: Pick<StoredConnection, 'cause'>, state: ConnectionState): Reported | null {
  switch (state) {
    case 'connected':
      return cause === 'restricted' ? 'instance.restricted' : 'instance.connected'
    case 'disconnected':
      // While an attempt is under way, the cause of the last failure is not known.
      return cause === 'logging_in' ? null : 'instance.disconnected'
    case 'linking':
    case 'stopped':
    case 'logged_out':
      return `instance.${state}`
    case 'unlinked':
      return 'unlinked'
    case 'connecting':
    case 'reconnecting':
      return null
  }
}
