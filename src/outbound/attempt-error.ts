/** Why an attempt got no answer with complete headers. Stable codes: they appear in the API, the panel and the docs. */
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

/** An attempt failed for a reason that Node does not report. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly reason: AttemptError

  constructor(reason: AttemptError, message: string) {
    super(message)
    this.reason = reason
  }
}

/** @param error the request's error before the headers of the answer were complete */
export function attemptError(error: unknown): AttemptError {
  if (error instanceof AttemptFailed) return error.reason
  const code = codeOf(error)
  if (code === null) return 'connection_failed'
  return BY_CODE[code] ?? BY_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1] ?? 'connection_failed'
}

function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}
