import { hash } from 'node:crypto'

/** The SHA-256 digest of a token, in hexadecimal. Only the digest is stored (contract §6). */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'hex')
}
