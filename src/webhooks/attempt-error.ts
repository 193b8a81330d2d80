import { BlockedAddress } from './connector.ts'
import { LookupTimedOut } from './resolver.ts'

/** Why an attempt got no status line. Stable codes: they appear in the API, the panel and the docs. */
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
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'dns_failed',
  ECONNREFUSED: 'connection_refused',
  ECONNRESET: 'connection_reset',
  EPIPE: 'connection_reset',
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
}

/** Prefixes of the codes of the HTTP parser, getaddrinfo, OpenSSL and Node's TLS. */
const BY_PREFIX: readonly (readonly [string, AttemptError])[] = [
  ['HPE_', 'protocol_error'],
  ['EAI_', 'dns_failed'],
  ['ERR_TLS_', 'tls_failed'],
  ['ERR_SSL_', 'tls_failed'],
  ['ERR_OSSL_', 'tls_failed'],
  ['UNABLE_TO_', 'tls_failed'],
  ['CERT_', 'tls_failed'],
]

/** The consumer sent more 1xx responses than an attempt accepts. */
export class TooManyInterimResponses extends Error {
  override readonly name = 'TooManyInterimResponses'
}

/** The connection closed without a response or an error. */
export class ClosedWithoutResponse extends Error {
  override readonly name = 'ClosedWithoutResponse'
  readonly code = 'ECONNRESET'
}

/** @param error the request's error before a status line */
export function attemptError(error: unknown): AttemptError {
  if (error instanceof BlockedAddress) return 'blocked_address'
  if (error instanceof LookupTimedOut) return 'dns_failed'
  if (error instanceof TooManyInterimResponses) return 'protocol_error'
  const code = codeOf(error)
  if (code === null) return 'connection_failed'
  return BY_CODE[code] ?? BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1] ?? 'connection_failed'
}

function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}
