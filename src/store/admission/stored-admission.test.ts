import { describe, expect, test } from 'vitest'
import type { Core } from '../engine/core.ts'
import { Statements } from '../engine/statement.ts'
import { LocalAdmission } from './stored-admission.ts'

function admissionAt(clock: { now: number }, ratePerMinute: number): LocalAdmission {
  const core = {
    statements: new Statements('sqlite'),
    reader: { run: async () => [{ instance_id: 'inst_1', key_id: null, scopes: null, expires_at: null }] },
  } as unknown as Core
  return new LocalAdmission(core, ratePerMinute, { note: () => undefined }, { steady: () => clock.now })
}

describe('the rate window', () => {
  test('opens with the first call, lasts 60 s, and opens again with the first call after that', async () => {
    const clock = { now: 5_000 }
    const admission = admissionAt(clock, 2)
    const call = () => admission.admit('00'.repeat(32))
    expect(await call()).toEqual({
      instanceId: 'inst_1',
      key: null,
      calls: 1,
      limit: 2,
      resetMs: 60_000,
    })
    clock.now += 59_999
    expect(await call()).toMatchObject({ calls: 2, limit: 2, resetMs: 1 })
    expect(await call()).toMatchObject({ calls: 3, limit: 2, resetMs: 1 })
    clock.now += 1
    expect(await call()).toMatchObject({ calls: 1, limit: 2, resetMs: 60_000 })
    clock.now += 10 * 60_000
    expect(await call()).toMatchObject({ calls: 1, limit: 2, resetMs: 60_000 })
  })
})
