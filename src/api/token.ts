import { hash } from 'node:crypto'

/** A token as the store knows it: stored only as a SHA-256 digest (decisions §6). */
export function tokenDigest(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
