import type { IncomingMessage } from 'node:http'
import { Refusal } from '../../domain/refusal.ts'

const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*\/?/i

/**
 * The request target as a path for the router. The absolute form (RFC 9112 §3.2.2) loses its authority. A path with
 * invalid percent-encoding is taken literally, so that it leads to a 404.
 */
export function readableTarget({ url: target = '/' }: { url?: string | undefined }): string {
  const local = target.startsWith('/') ? target : target.replace(ABSOLUTE_FORM, '/')
  if (!local.includes('%')) return local
  const end = local.search(/[?#]/)
  const path = end === -1 ? local : local.slice(0, end)
  return isDecodable(path) ? local : path.replaceAll('%', '%25') + local.slice(path.length)
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

/** An HTTP/1.1 request has exactly one valid Host header (RFC 9112 §3.2). */
export function checkHost({ headersDistinct, httpVersion }: IncomingMessage): Refusal | undefined {
  const [host, other] = headersDistinct['host'] ?? []
  // A proxy may have used the other one.
  if (other !== undefined) return new Refusal('invalid_request', 'There is more than one Host header.')
  if (host === undefined) {
    return httpVersion === '1.0' ? undefined : new Refusal('invalid_request', 'The Host header is missing.')
  }
  return URL.canParse(`http://${host}`) ? undefined : new Refusal('invalid_request', 'The Host header is malformed.')
}
