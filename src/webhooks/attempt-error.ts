import { errors } from 'undici'
import { BlockedAddress } from './connector.ts'
import { LookupTimedOut } from './resolver.ts'

/** Why an attempt got no status line. Stable: shown in the log of attempts and documented. */
export const ATTEMPT_ERRORS = [
  'timeout',
  'blocked_address',
  'dns_failed',
  'connection_refused',
  'connection_reset',
  'unreachable',
  'tls_failed',
  'protocol_error',
  'connection_failed',
  'internal_error',
] as const
export type AttemptError = (typeof ATTEMPT_ERRORS)[number]

const BY_CODE: Readonly<Record<string, AttemptError>> = {
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'dns_failed',
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  EPIPE: 'connection_reset',
  UND_ERR_SOCKET: 'connection_reset',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EPROTO: 'tls_failed',
  CERT_HAS_EXPIRED: 'tls_failed',
  CERT_NOT_YET_VALID: 'tls_failed',
  CERT_REVOKED: 'tls_failed',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_failed',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_failed',
  HOSTNAME_MISMATCH: 'tls_failed',
  INVALID_CA: 'tls_failed',
  INVALID_PURPOSE: 'tls_failed',
  UND_ERR_HEADERS_OVERFLOW: 'protocol_error',
  UND_ERR_INFO: 'protocol_error',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'protocol_error',
}

/** Families of codes: getaddrinfo's, OpenSSL's and Node's own of TLS. */
const BY_PREFIX: readonly (readonly [string, AttemptError])[] = [
  ['EAI_', 'dns_failed'],
  ['ERR_TLS_', 'tls_failed'],
  ['ERR_SSL_', 'tls_failed'],
  ['ERR_OSSL_', 'tls_failed'],
  ['UNABLE_TO_', 'tls_failed'],
  ['CERT_', 'tls_failed'],
]

/** @param error what undici rejected with before a status line came */
export function attemptError(error: unknown): AttemptError {
  if (error instanceof BlockedAddress) return 'blocked_address'
  if (error instanceof LookupTimedOut) return 'dns_failed'
  if (error instanceof errors.HTTPParserError) return 'protocol_error'
  const code = codeOf(error)
  if (code === null) return 'connection_failed'
  return BY_CODE[code] ?? BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1] ?? 'connection_failed'
}

function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}
