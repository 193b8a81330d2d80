/** The connection states of decisions §6. */
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

/** How long a linked instance that lost its socket still accepts messages (decisions §3). */
export const RECONNECTING_MS = 5 * 60_000

/** What the management API asks of the owner; it converges on it however often it is asked. */
export const CONNECTION_GOALS = ['idle', 'online', 'logged_out'] as const
export type ConnectionGoal = (typeof CONNECTION_GOALS)[number]

/** Why a connection needs a person, where we know: each has a remedy of its own. */
export const CONNECTION_CAUSES = [
  'banned',
  'version_refused',
  'login_refused',
  'no_linked_devices',
  'replaced',
  'code_expired',
  'unreachable',
] as const
export type ConnectionCause = (typeof CONNECTION_CAUSES)[number]

/** An instance's connection as stored. Moments are milliseconds since 1970. */
export interface StoredConnection {
  state: StoredConnectionState
  /** In words, for a person. */
  reason: string
  /** Null where the state needs no remedy, or we know of none. */
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

/** Whether a message is accepted in this state (decisions §3). */
export function acceptsMessages(state: ConnectionState): boolean {
  return state === 'connected' || state === 'reconnecting'
}
