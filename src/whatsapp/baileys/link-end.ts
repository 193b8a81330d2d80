import { DisconnectReason } from 'baileys'

/** Why a socket ended, as far as it says. */
export interface LinkEnd {
  /** Baileys' status code: a close code of its own or WhatsApp's failure reason. */
  code: number
  /** WhatsApp says that the phone removed this device. */
  deviceRemoved: boolean
  /** With `NOT_REACHED`: what the system or TLS calls it, such as `ENOTFOUND`. */
  systemCode?: string
}

/** Our own code: what WhatsApp delivered could not be recorded, so that it has to come again. */
export const NOT_RECORDED = -1

/** Our own code: no connection came about. Baileys calls it a time-out, or unknown. */
export const NOT_REACHED = -2

/** Our own code: an exception in the library may have left the socket half changed. */
export const LIBRARY_BROKE = -3

/** Of a connection that was there. */
const CUT = ['ECONNRESET', 'EPIPE']
const TIMED_OUT = 'ETIMEDOUT'
/** The `ws` package's codes for what a server said. */
const PROTOCOL = 'WS_'

/** Baileys' own stand-in for "nobody said why". */
const UNKNOWN_CODE = DisconnectReason.badSession

/** Baileys reports a Boom, a plain Error, or nothing at all. */
export function parseLinkEnd(error: unknown): LinkEnd {
  const { output, data } = (error ?? {}) as { output?: { statusCode?: unknown }; data?: unknown }
  const code = typeof output?.statusCode === 'number' ? output.statusCode : UNKNOWN_CODE
  if (data instanceof Error) return parseSystemError(data, code)
  const node = data as { tag?: unknown; attrs?: { type?: unknown } } | null | undefined
  // A conflict without a code becomes 440 whatever its type; the type tells a removal from a replacement.
  return { code, deviceRemoved: node?.tag === 'conflict' && node.attrs?.type === 'device_removed' }
}

/** @param code Baileys' own, for what says no more */
function parseSystemError(error: NodeJS.ErrnoException, code: number): LinkEnd {
  const systemCode = error.code
  if (systemCode && CUT.includes(systemCode)) return { code: DisconnectReason.connectionClosed, deviceRemoved: false }
  if (!systemCode || systemCode === TIMED_OUT || systemCode.startsWith(PROTOCOL)) return { code, deviceRemoved: false }
  return { code: NOT_REACHED, deviceRemoved: false, systemCode }
}
