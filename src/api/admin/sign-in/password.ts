import { randomBytes, timingSafeEqual } from 'node:crypto'
import { Derivations } from './scrypt.ts'

/** RFC 7914's parameters, as OWASP's cheat sheet has them: 32 MiB and some 100 ms. */
const COST = { N: 2 ** 15, r: 8, p: 1 }
const MAX_MEMORY_BYTES = 64 * 1024 * 1024
const SALT_BYTES = 16
const KEY_BYTES = 32

/** Anybody can have a password checked; to set one takes a key, and never waits for those who guess. */
const checked = new Derivations()
const set = new Derivations()

export const MIN_PASSWORD_LENGTH = 12
export const MAX_PASSWORD_LENGTH = 200

/** `scrypt$N$r$p$salt$key`: what is needed to check a password, and not the password. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const key = await set.derive({
    password: password.normalize('NFKC'),
    salt,
    keyBytes: KEY_BYTES,
    cost: { ...COST, maxmem: MAX_MEMORY_BYTES },
  })
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64'), Buffer.from(key).toString('base64')].join('$')
}

export async function isPassword(password: string, hash: string): Promise<boolean> {
  const [, n, r, p, salt = '', key = ''] = hash.split('$')
  const expected = Buffer.from(key, 'base64')
  const cost = { N: Number(n), r: Number(r), p: Number(p), maxmem: MAX_MEMORY_BYTES }
  const given = await checked.derive({
    password: password.normalize('NFKC'),
    salt: Buffer.from(salt, 'base64'),
    keyBytes: expected.length,
    cost,
  })
  return timingSafeEqual(given, expected)
}
