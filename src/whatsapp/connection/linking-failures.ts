import type { StoredConnection } from '../../domain/connection/connection.ts'
import type { LinkEnd, LinkingObstacle } from '../baileys/link-end.ts'

type Failure = Pick<StoredConnection, 'reason'> & { cause: NonNullable<StoredConnection['cause']> }

/** The phone took part, but WhatsApp did not complete the linking. */
export const UNFINISHED = {
  cause: 'linking_unfinished',
  reason:
    'The phone took the code, but WhatsApp did not complete the linking. Remove unused linked devices on the phone, wait a ' +
    'few minutes, then connect again.',
} as const satisfies Failure

const IDENTITY_REJECTED = 'Set WHATSAPP_DEVICE to another device (such as chrome-windows), restart, and connect again.'

const FAILURES: Readonly<Record<LinkingObstacle, Failure>> = {
  passkey: {
    cause: 'passkey_required',
    reason:
      'WhatsApp asks this account for a passkey to link a device, and linking with a passkey is switched off. A new code will not ' +
      'help. WhatsApp does not always ask: try again on another day, or set WHATSAPP_PASSKEY=on (experimental), restart, and ' +
      'connect again.',
  },
  passkey_refused: {
    cause: 'passkey_refused',
    reason:
      'WhatsApp did not accept the passkey. Use the passkey of this account, from the browser or phone that has it, and ' +
      'connect again.',
  },
  passkey_expired: {
    cause: 'passkey_expired',
    reason:
      'Nobody answered with the passkey, or confirmed the code, in time. Connect again, and have the passkey at hand.',
  },
  device_refused: {
    cause: 'identity_rejected',
    reason:
      'WhatsApp gave no pairing code: it refuses the announced device, or too many codes were requested for this number. ' +
      `Link by QR code, or wait an hour. If that does not help: ${IDENTITY_REJECTED}`,
  },
  hung_up: {
    cause: 'identity_rejected',
    reason: `WhatsApp ends each connection before it gives a code. It may refuse the announced device. ${IDENTITY_REJECTED}`,
  },
  device_limit: {
    cause: 'device_limit',
    reason: 'The account has too many linked devices. Remove one on the phone, then connect again.',
  },
  phone_silent: {
    cause: 'phone_offline',
    reason:
      'The phone took the code but did not confirm. Check that it is online and keep WhatsApp open on it, then connect again.',
  },
  unfinished: UNFINISHED,
}

/** A network that cuts connections causes the same end once or twice. */
const MAX_HANG_UPS = 2

/**
 * Why another code would not help. Null if it may help.
 * @param unauthorized WhatsApp answered 401
 * @param failures failures in a row before this end
 */
export function linkingFailure({ obstacle }: LinkEnd, unauthorized: boolean, failures: number): Failure | null {
  if (obstacle === 'hung_up' && failures < MAX_HANG_UPS) return null
  if (obstacle) return FAILURES[obstacle]
  return unauthorized ? UNFINISHED : null
}
