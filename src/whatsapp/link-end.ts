import { DisconnectReason } from 'baileys'

/** Why a socket ended, as far as it says. */
export interface LinkEnd {
  /** Baileys' status code: a close code of its own or WhatsApp's failure reason. */
  code: number
  /** WhatsApp says that the phone removed this device. */
  deviceRemoved: boolean
}

/** Our own code: what WhatsApp delivered could not be recorded, so that it has to come again. */
export const NOT_RECORDED = -1

/** Baileys' own stand-in for "nobody said why". */
const UNKNOWN_CODE = DisconnectReason.badSession

/** Baileys reports a Boom, a plain Error, or nothing at all. */
export function parseLinkEnd(error: unknown): LinkEnd {
  const { output, data } = (error ?? {}) as { output?: { statusCode?: unknown }; data?: unknown }
  const code = typeof output?.statusCode === 'number' ? output.statusCode : UNKNOWN_CODE
  const node = data as { tag?: unknown; attrs?: { type?: unknown } } | null | undefined
  // A conflict without a code becomes 440 whatever its type; the type tells a removal from a replacement.
  return { code, deviceRemoved: node?.tag === 'conflict' && node.attrs?.type === 'device_removed' }
}
