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

/** What an owner may record. `disconnected` is never stored: it is `reconnecting` that has lasted too long. */
export type StoredConnectionState = Exclude<ConnectionState, 'disconnected'>

/** How long a linked instance that lost its socket still accepts messages (contract §3). */
export const RECONNECTING_MS = 5 * 60_000

/** What the management API asks of the owner; it converges on it however often it is asked. */
export type ConnectionGoal = 'idle' | 'online' | 'logged_out'

/** Every reason for a state, as a stable code beside the sentence. */
export const CONNECTION_CAUSES = [
  // Nothing to mend.
  'never_linked',
  'linking_interrupted',
  'asking_for_code',
  'scan_qr_code',
  'type_pairing_code',
  'first_login',
  'logging_in',
  'connected',
  'logged_out_as_asked',
  'logged_out_by_phone',
  // It mends itself.
  'restricted',
  'stopping',
  'owner_gone',
  'cut',
  'no_answer',
  'unavailable',
  'ended',
  'new_connection_asked',
  'not_recorded',
  'keys_not_stored',
  // A person is needed.
  'banned',
  'version_refused',
  'login_refused',
  'no_linked_devices',
  'replaced',
  'code_expired',
  'unreachable',
  'sandbox_off',
] as const
export type ConnectionCause = (typeof CONNECTION_CAUSES)[number]

/** An instance's connection as stored. Moments are milliseconds since 1970. */
export interface StoredConnection {
  state: StoredConnectionState
  /** In words, for a person. */
  reason: string
  /** The reason as a code; null in a row that is older than the codes. */
  cause: ConnectionCause | null
  since: number
  goal: ConnectionGoal
  /** Grows by one with every request to connect or log out, so that a repeated wish is seen as a new one. */
  goalVersion: number
  /** Number for which a pairing code is wanted instead of a QR code. */
  pairingPhone: string | null
  qr: string | null
  qrExpiresAt: number | null
  pairingCode: string | null
  /** When the next socket is opened, while it waits for that. */
  retryAt: number | null
  restriction: Restriction | null
  /** The linked number, digits only. */
  phone: string | null
  /** Last moment at which the socket was known to be open; moves with the owner's lease while connected. */
  lastConnectedAt: number | null
}

/** The state that holds now, given what is stored and whether somebody's lease on the instance is alive. */
export function currentState(
  stored: Pick<StoredConnection, 'state' | 'lastConnectedAt'>,
  leaseAlive: boolean,
  now: number,
): ConnectionState {
  const away = stored.state === 'reconnecting' || (stored.state === 'connected' && !leaseAlive)
  if (!away) return stored.state
  return now - (stored.lastConnectedAt ?? 0) < RECONNECTING_MS ? 'reconnecting' : 'disconnected'
}

/** Whether a number is linked: WhatsApp then keeps for the instance what it cannot deliver at once. */
export function isLinked(state: ConnectionState): boolean {
  return state !== 'unlinked' && state !== 'linking' && state !== 'logged_out'
}

/** Whether a message is accepted in this state (contract §3). */
export function acceptsMessages(state: ConnectionState): boolean {
  return state === 'connected' || state === 'reconnecting'
}
