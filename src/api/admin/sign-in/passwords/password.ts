import { randomBytes, timingSafeEqual } from 'node:crypto'
import { Derivations } from './scrypt.ts'

/** scrypt parameters (RFC 7914) as recommended by OWASP: 32 MiB and about 100 ms. */
const COST = { N: 2 ** 15, r: 8, p: 1 }
const MAX_MEMORY_BYTES = 64 * 1024 * 1024
const SALT_BYTES = 16
const KEY_BYTES = 32

/** Three queues, so that guesses delay neither browsers that signed in before nor the setting of a password. */
const guessed = new Derivations()
const known = new Derivations()
const set = new Derivations()

/** A hash that no password has. Checking it takes as long as any other. */
export const NO_PASSWORD = [
  'scrypt',
  COST.N,
  COST.r,
  COST.p,
  randomBytes(SALT_BYTES).toString('base64'),
  randomBytes(KEY_BYTES).toString('base64'),
].join('$')

export const MIN_PASSWORD_LENGTH = 12
export const MAX_PASSWORD_LENGTH = 200

/**
 * @param setter who sets the password. One password of a setter is hashed at a time, so that none of them fills the queue.
 * @returns `scrypt$N$r$p$salt$key`
 * @throws Refusal `service_unavailable` if another one of the setter is being hashed, or too many wait
 */
export async function hashPassword(password: string, setter: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const cost = { ...COST, maxmem: MAX_MEMORY_BYTES }
  const key = await set.derive({ password: password.normalize('NFKC'), salt, keyBytes: KEY_BYTES, cost }, setter)
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64'), Buffer.from(key).toString('base64')].join('$')
}

/** @param isKnown whether the caller has a session, or signed in before */
export async function isPassword(password: string, hash: string, isKnown = false): Promise<boolean> {
  const [, n, r, p, salt = '', key = ''] = hash.split('$')
  const expected = Buffer.from(key, 'base64')
  const cost = { N: Number(n), r: Number(r), p: Number(p), maxmem: MAX_MEMORY_BYTES }
  const derived = await (isKnown ? known : guessed).derive({
    password: password.normalize('NFKC'),
    salt: Buffer.from(salt, 'base64'),
    keyBytes: expected.length,
    cost,
  })
  return timingSafeEqual(derived, expected)
}
