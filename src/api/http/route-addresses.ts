import type { IncomingMessage } from 'node:http'
import { Refusal } from '../../domain/refusal.ts'

const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*\/?/i

/**
 * The request's target as a path that the router can read, whatever was sent: the absolute form (RFC 9112 §3.2.2)
 * loses its authority, and a path whose percent-encoding is broken is taken literally, so that it names something
 * that does not exist.
 */
export function readableTarget(target: string): string {
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

/** A request of HTTP/1.1 names its host, once, and that properly (RFC 9112 §3.2). */
export function checkHost({ headers, rawHeaders, httpVersion }: IncomingMessage): Refusal | undefined {
  const { host } = headers
  // Of two, Node shows the first; a proxy may have gone by the other.
  if (countHosts(rawHeaders) > 1) return new Refusal('invalid_request', 'There is more than one Host header.')
  if (host === undefined) {
    return httpVersion === '1.0' ? undefined : new Refusal('invalid_request', 'The Host header is missing.')
  }
  return URL.canParse(`http://${host}`) ? undefined : new Refusal('invalid_request', 'The Host header is malformed.')
}

/** @param rawHeaders names and values in turn */
function countHosts(rawHeaders: readonly string[]): number {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host')
    .length
}
