import { expect, test } from 'vitest'
import { Derivations } from './scrypt.ts'

const derivation = { password: 'x', salt: Buffer.from('salt'), keyBytes: 16, cost: { N: 2, r: 1, p: 1, maxmem: 1e6 } }

test('a caller has one place in the queue, and gets it back', async () => {
  const derivations = new Derivations()
  const first = derivations.derive(derivation, 'ana')
  await expect(derivations.derive(derivation, 'ana')).rejects.toMatchObject({ code: 'service_unavailable' })
  const others = [derivations.derive(derivation, 'zoe'), derivations.derive(derivation), derivations.derive(derivation)]
  expect(await first).toHaveLength(16)
  expect(await Promise.all(others)).toHaveLength(3)
  expect(await derivations.derive(derivation, 'ana')).toEqual(await first)
})
