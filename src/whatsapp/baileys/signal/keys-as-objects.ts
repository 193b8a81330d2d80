import crypto, { createSecretKey } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const TAKING_KEYS = ['createHmac', 'createCipheriv', 'createDecipheriv'] as const
type TakesKey = (algorithm: string, key: unknown, ...others: unknown[]) => unknown

const patched = new WeakSet<object>()

/**
 * Spares Node 24 what it does with a key that is given as bytes (`isKeyObject` and `isCryptoKey` in `internal/crypto/keys`):
 * it learns that they are no object by two exceptions, which it makes and catches for each MAC and each cipher, and which
 * take four times as long as the MAC. Baileys and libsignal give theirs so, some forty for a message that is sent: a
 * seventh of the main thread. Here they are made into objects first.
 */
export function giveKeysAsObjects(target: object = crypto): void {
  if (patched.has(target)) return
  patched.add(target)
  const functions = target as Record<(typeof TAKING_KEYS)[number], TakesKey>
  for (const name of TAKING_KEYS) {
    const original = functions[name]
    functions[name] = (algorithm, key, ...others) =>
      original(algorithm, key instanceof Uint8Array ? createSecretKey(key) : key, ...others)
  }
  // Those who import them by name get the new ones too.
  syncBuiltinESMExports()
}
