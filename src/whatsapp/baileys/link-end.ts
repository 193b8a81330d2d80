import { DisconnectReason } from 'baileys'

/**
 * Why a number could not be linked, as WhatsApp shows it.
 *
 * - `passkey`: WhatsApp asks for a passkey, and linking with one is switched off. `passkey_refused`: it does not accept the
 *   passkey, or the phone refused to finish. `passkey_expired`: nobody answered in time.
 * - `device_refused`: WhatsApp gives no pairing code. `hung_up`: it ended the socket instead of giving a QR code.
 * - `device_limit`: the account has the largest allowed number of linked devices.
 * - `phone_silent`: the phone has accepted the code but does not confirm.
 * - `unfinished`: the phone took part, but the linking failed, or WhatsApp keeps asking for new codes.
 */
export type LinkingObstacle =
  | 'passkey'
  | 'passkey_refused'
  | 'passkey_expired'
  | 'device_refused'
  | 'hung_up'
  | 'device_limit'
  | 'phone_silent'
  | 'unfinished'

export interface LinkEnd {
  /** Baileys' status code, which is its own close code or WhatsApp's failure reason, or one of our codes below. */
  code: number
  /** WhatsApp reports that the phone removed this device. */
  deviceRemoved: boolean
  /** With `NOT_REACHED`: the error code of the system or of TLS, such as `ENOTFOUND`. */
  systemCode?: string
  /** Set if the number was not linked yet and WhatsApp has shown why. */
  obstacle?: LinkingObstacle | undefined
}

/** Our own code: a stanza could not be recorded, and WhatsApp has to deliver it again. */
export const NOT_RECORDED = -1

/** Our own code: no connection was established. Baileys reports this as a timeout or an unknown error. */
export const NOT_REACHED = -2

/** Our own code: an exception in the library may have left the socket in an inconsistent state. */
export const LIBRARY_BROKE = -3

/** Our own code: the number cannot be linked, for the reason in `obstacle`. */
export const LINKING_FAILED = -4

/** Our own code: WhatsApp has announced kept messages and does not deliver them, and delivers no new ones before those. */
export const NOT_CAUGHT_UP = -5

/** Error codes of an established connection. */
const CUT = ['ECONNRESET', 'EPIPE']
const TIMED_OUT = 'ETIMEDOUT'
/** Prefix of the `ws` package's codes for protocol errors of the server. */
const PROTOCOL = 'WS_'

/** Baileys' code for an end without a reason. */
const UNKNOWN_CODE = DisconnectReason.badSession

/** Baileys reports a Boom, a plain Error, or nothing at all. */
export function parseLinkEnd(error: unknown): LinkEnd {
  const { output, data } = (error ?? {}) as { output?: { statusCode?: unknown }; data?: unknown }
  const code = typeof output?.statusCode === 'number' ? output.statusCode : UNKNOWN_CODE
  if (data instanceof Error) return parseSystemError(data, code)
  const node = data as { tag?: unknown; attrs?: { type?: unknown } } | null | undefined
  // Baileys reports each conflict without a code as 440. Only the type distinguishes a removal from a replacement.
  return { code, deviceRemoved: node?.tag === 'conflict' && node.attrs?.type === 'device_removed' }
}

/** @param code Baileys' code, used if the error is not more specific */
function parseSystemError(error: NodeJS.ErrnoException, code: number): LinkEnd {
  const systemCode = error.code
  if (systemCode && CUT.includes(systemCode)) return { code: DisconnectReason.connectionClosed, deviceRemoved: false }
  if (!systemCode || systemCode === TIMED_OUT || systemCode.startsWith(PROTOCOL)) return { code, deviceRemoved: false }
  return { code: NOT_REACHED, deviceRemoved: false, systemCode }
}
