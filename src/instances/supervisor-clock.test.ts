import { afterEach, describe, expect, test, vi } from 'vitest'
import { pass, setUp } from '../../test/units/supervisor-harness.ts'

afterEach(() => vi.useRealTimers())

describe('when a node may act', () => {
  test('a node may act only while no other node can have taken over since its last renewal', async () => {
    const { leases, renewal } = setUp(['a'])
    expect(renewal.mayAct()).toBe(false)
    await pass(1)
    expect(renewal.mayAct()).toBe(true)
    leases.failing = true
    await pass(9_000)
    expect(renewal.mayAct()).toBe(true)
    await pass(1_500)
    expect(renewal.mayAct()).toBe(false)
  })

  test('after a pause that also stopped its monotonic clock, a node may not act until its leases are renewed', async () => {
    const { leases, wall, supervisor, renewal, log, loggedBeforeRenewal } = setUp(['a', 'b'])
    await pass(1)
    leases.rows.set('a', { owner: 'another', epoch: 2 })
    wall.aheadMs = 20_000
    expect(renewal.mayAct()).toBe(false)
    expect(supervisor.isRenewed).toBe(false)
    // Immediately, not at the next regular renewal.
    await pass(0)
    expect(renewal.mayAct()).toBe(true)
    expect(supervisor.size).toBe(1)
    expect(loggedBeforeRenewal.at(-1)).toBe('revoke a')
    await pass(200)
    expect(log).toEqual(['run a 1', 'run b 1', 'revoke a', 'stop a lost'])
  })

  test('after a pause an instance that was already stopping does not act either if its lease is lost', async () => {
    const { leases, wall, lost, renewal, log, loggedBeforeRenewal } = setUp(['a'])
    await pass(1)
    leases.rows.set('a', { owner: 'another', epoch: 2 })
    lost.get('a')?.()
    wall.aheadMs = 20_000
    expect(renewal.mayAct()).toBe(false)
    await pass(0)
    expect(renewal.mayAct()).toBe(true)
    expect(loggedBeforeRenewal.at(-1)).toBe('revoke a')
    await pass(200)
    expect(log).toEqual(['run a 1', 'revoke a', 'stop a lost'])
  })

  test('a renewal that was under way when the machine was paused does not count', async () => {
    const { leases, wall, renewal } = setUp(['a'])
    await pass(1)
    const renew = leases.renew.bind(leases)
    leases.renew = async owner => {
      const held = await renew(owner)
      await new Promise(resolve => setTimeout(resolve, 100))
      return held
    }
    await pass(5_050)
    wall.aheadMs = 20_000
    await pass(60)
    expect(renewal.mayAct()).toBe(false)
    await pass(110)
    expect(renewal.mayAct()).toBe(true)
  })

  test('a wall clock that is set forward stops a node from acting until the next renewal, but stops no instance', async () => {
    const { wall, renewal, log } = setUp(['a'])
    await pass(1)
    for (let jump = 1; jump <= 3; jump++) {
      wall.aheadMs += 3_600_000
      expect(renewal.mayAct()).toBe(false)
      await pass(0)
      expect(renewal.mayAct()).toBe(true)
    }
    await pass(60_000)
    expect(renewal.mayAct()).toBe(true)
    expect(log).toEqual(['run a 1'])
  })

  test('a wall clock that is set forward while the store is unavailable causes no additional renewals', async () => {
    const { leases, wall, renewal } = setUp(['a'])
    await pass(1)
    leases.failing = true
    const renew = vi.spyOn(leases, 'renew')
    wall.aheadMs = 3_600_000
    for (let asked = 0; asked < 400; asked++) {
      expect(renewal.mayAct()).toBe(false)
      await pass(10)
    }
    expect(renew.mock.calls.length).toBeLessThanOrEqual(5)
    leases.failing = false
    await pass(1_000)
    expect(renewal.mayAct()).toBe(true)
  })

  test('a wall clock that is set back neither stops a node from acting nor lets it act for longer', async () => {
    const { leases, wall, renewal } = setUp(['a'])
    await pass(1)
    leases.failing = true
    wall.aheadMs = -3_600_000
    await pass(9_000)
    expect(renewal.mayAct()).toBe(true)
    await pass(1_500)
    expect(renewal.mayAct()).toBe(false)
    leases.failing = false
    await pass(1_000)
    expect(renewal.mayAct()).toBe(true)
  })
})
