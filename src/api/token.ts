import { hash } from 'node:crypto'

/** One token of visible ASCII after the case-insensitive scheme (RFC 9110 §11.1). */
const BEARER = /^bearer +([\x21-\x7e]+)$/i

/** The token of an `Authorization` header; null if it is missing or malformed. */
export function parseBearer(header: string | undefined): string | null {
  return (header !== undefined && BEARER.exec(header)?.[1]) || null
}

/** The SHA-256 digest of a token, in hexadecimal. Only the digest is stored (contract §6). */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'hex')
}
