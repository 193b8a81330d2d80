import { attemptError } from '../attempt-error.ts'

/** How a proxy fails, with a message for people. */
export const PROXY_FAILURES = {
  PROXY_LOGIN: 'The proxy refused the user name or the password. Correct the proxy of the instance.',
  PROXY_REFUSED: 'The proxy refused to connect to WhatsApp. Allow it there, or set another proxy.',
  PROXY_UNREACHABLE: 'The proxy could not be reached. Check its address and that it runs, or set another proxy.',
  PROXY_TIMEOUT: 'The proxy did not answer in time. Check that it runs, or set another proxy.',
  PROXY_CERTIFICATE:
    'The certificate of the proxy is not valid, or the proxy does not speak TLS. Correct it, or set another proxy.',
  PROXY_BLOCKED:
    'The service may not connect to the address of the proxy. Set another proxy, or allow its address in PROXY_ALLOWED_NETWORKS.',
} as const

export type ProxyFailure = keyof typeof PROXY_FAILURES

/** The proxy failed before a byte went to the server behind it. */
export class ProxyFailed extends Error {
  override readonly name = 'ProxyFailed'
  readonly code: ProxyFailure

  constructor(code: ProxyFailure) {
    super(PROXY_FAILURES[code])
    this.code = code
  }

  /** @param error of the agent. Its text is not kept, because the SOCKS client's error has the password in its options */
  static from(error: unknown): ProxyFailed {
    if (error instanceof ProxyFailed) return error
    const message = error instanceof Error ? error.message : ''
    // The SOCKS client wraps the error of a look-up, and keeps only its text.
    if (message === PROXY_FAILURES.PROXY_BLOCKED) return new ProxyFailed('PROXY_BLOCKED')
    if (/timed out|no answer within/i.test(message)) return new ProxyFailed('PROXY_TIMEOUT')
    if (/authentication/i.test(message)) return new ProxyFailed('PROXY_LOGIN')
    if (/rejected connection/i.test(message)) return new ProxyFailed('PROXY_REFUSED')
    return new ProxyFailed(attemptError(error) === 'tls_failed' ? 'PROXY_CERTIFICATE' : 'PROXY_UNREACHABLE')
  }
}

export function isProxyFailure(code: string | undefined): code is ProxyFailure {
  return code !== undefined && Object.hasOwn(PROXY_FAILURES, code)
}
