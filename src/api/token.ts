import { hash } from 'node:crypto'

/** A token as the store knows it: stored only as a SHA-256 digest (contract §6), here in hexadecimal digits. */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'hex')
}
