import { afterEach, describe, expect, test, vi } from 'vitest'
import { pass, setUp } from '../../test/units/supervisor-harness.ts'

afterEach(() => vi.useRealTimers())

describe('a node’s instances', () => {
  test('every instance without an owner is acquired', async () => {
    const { supervisor } = setUp(Array.from({ length: 120 }, (_, index) => `inst_${index}`))
    await pass(1)
    expect(supervisor.size).toBe(120)
  })

  test('are renewed only after a first renewal, while it is recent, and until the supervisor closes', async () => {
    const { leases, supervisor } = setUp(['a'])
    expect(supervisor.isRenewed).toBe(false)
    await pass(1)
    expect(supervisor.isRenewed).toBe(true)
    leases.failing = true
    await pass(9_000)
    expect(supervisor.isRenewed).toBe(true)
    await pass(7_000)
    expect(supervisor.isRenewed).toBe(false)
    leases.failing = false
    await pass(2_000)
    expect(supervisor.isRenewed).toBe(true)
    const closed = supervisor.close(8_000)
    expect(supervisor.isRenewed).toBe(false)
    await pass(1_000)
    await closed
  })

  test('a hint starts a new instance and notifies a running one of its goal', async () => {
    const { leases, hints, log } = setUp(['a'])
    await pass(1)
    leases.add('b')
    hints.publish('free', 'b')
    hints.publish('goal', 'a')
    await pass(1)
    expect(log).toEqual(['run a 1', 'goal a', 'run b 1'])
  })

  test('an instance whose lease moved on is stopped, and never runs twice at the same time', async () => {
    const { leases, log, mostSockets } = setUp(['a'])
    await pass(1)
    leases.rows.set('a', { owner: null, epoch: 5 })
    await pass(6_000)
    expect(log).toEqual(['run a 1', 'stop a lost', 'run a 6'])
    expect(mostSockets()).toBe(1)
  })

  test('an instance whose thread died releases its lease and starts again under a new epoch', async () => {
    const { crashed, log, leases } = setUp(['a', 'b'])
    await pass(1)
    crashed.get('a')?.()
    await pass(200)
    expect(log).toEqual(['run a 1', 'run b 1', 'stop a held', 'run a 2'])
    expect(leases.rows.get('b')?.epoch).toBe(1)
  })

  test('an epoch is never started twice, even if its release fails', async () => {
    const { crashed, log, leases } = setUp(['a'])
    await pass(1)
    const release = leases.release.bind(leases)
    leases.release = async () => {
      throw new Error('too many writes')
    }
    crashed.get('a')?.()
    await pass(2_000)
    expect(log).toEqual(['run a 1', 'stop a held'])
    leases.release = release
    await pass(6_000)
    expect(log).toEqual(['run a 1', 'stop a held', 'run a 2'])
  })

  test('a fenced write stops the instance at once', async () => {
    const { leases, lost, log } = setUp(['a'])
    await pass(1)
    leases.rows.set('a', { owner: 'another', epoch: 2 })
    lost.get('a')?.()
    await pass(200)
    expect(log).toEqual(['run a 1', 'stop a lost'])
  })

  test('a node that cannot renew stops its instances before others may take over, and starts them again later', async () => {
    const { leases, supervisor, log } = setUp(['a', 'b'])
    await pass(1)
    leases.failing = true
    await pass(9_900)
    expect(supervisor.size).toBe(2)
    await pass(2_000)
    expect(supervisor.size).toBe(0)
    leases.failing = false
    await pass(2_000)
    expect(supervisor.size).toBe(2)
    expect(log.filter(line => line.startsWith('stop'))).toEqual(['stop a lost', 'stop b lost'])
    // The leases had not lapsed yet. They are released first, because a write of the first run may still be waiting.
    expect(log.slice(-2)).toEqual(['run a 2', 'run b 2'])
  })

  test('while another node runs, a node acquires only its own share', async () => {
    const { leases, supervisor } = setUp(['a', 'b', 'c', 'd'])
    leases.nodes = 2
    await pass(1)
    expect(supervisor.size).toBe(2)
  })

  test('another node’s lease is acquired as soon as it lapses', async () => {
    const { leases, supervisor } = setUp(['a'])
    leases.rows.set('a', { owner: 'another', epoch: 1 })
    leases.nextLapseMs = 1_200
    await pass(1)
    leases.rows.set('a', { owner: null, epoch: 1 })
    await pass(1_100)
    expect(supervisor.size).toBe(0)
    await pass(200)
    expect(supervisor.size).toBe(1)
  })

  test('instances beyond its share are drained, then handed over, a few at a time', async () => {
    const { leases, supervisor, log, mostSockets } = setUp(Array.from({ length: 50 }, (_, index) => `inst_${index}`))
    await pass(1)
    log.length = 0
    leases.nodes = 2
    await pass(5_000)
    expect(log).toEqual(Array.from({ length: 10 }, (_, index) => `drain inst_${49 - index}`))
    expect(supervisor.size).toBe(50)
    await pass(500)
    expect(log.filter(line => line.startsWith('stop'))).toHaveLength(10)
    for (const [instanceId, row] of leases.rows)
      if (row.owner === null) leases.rows.set(instanceId, { owner: 'another', epoch: 2 })
    expect(supervisor.size).toBe(40)
    await pass(3_500)
    for (const [instanceId, row] of leases.rows)
      if (row.owner === null) leases.rows.set(instanceId, { owner: 'another', epoch: 2 })
    await pass(20_000)
    expect(supervisor.size).toBe(25)
    expect(mostSockets()).toBe(50)
    expect(log.filter(line => line.endsWith('lost'))).toEqual([])
  })

  test('an instance that drains for long does not hold up the handover of the others', async () => {
    const { leases, supervisor, log, drainMs } = setUp(Array.from({ length: 50 }, (_, index) => `inst_${index}`))
    await pass(1)
    drainMs.set('inst_49', 61_000)
    leases.nodes = 2
    for (let seconds = 0; seconds < 30; seconds += 1) {
      await pass(1_000)
      for (const [id, row] of leases.rows) if (row.owner === null) leases.rows.set(id, { owner: 'another', epoch: 2 })
    }
    expect(supervisor.size).toBe(26)
    await pass(60_000)
    expect(supervisor.size).toBe(25)
    expect(log.filter(line => line.startsWith('drain'))).toHaveLength(25)
    expect(log.at(-1)).toBe('stop inst_49 held')
  })

  test('an instance is not handed over while it is being linked, but a stop does not wait', async () => {
    const { leases, log, linking, supervisor } = setUp(['a', 'b', 'c', 'd'])
    await pass(1)
    for (const id of ['b', 'c', 'd']) linking.add(id)
    leases.nodes = 2
    await pass(5_500)
    expect(log.slice(4)).toEqual(['drain a', 'stop a held'])
    leases.rows.set('a', { owner: 'another', epoch: 2 })
    await pass(20_000)
    expect(supervisor.size).toBe(3)
    linking.delete('c')
    await pass(5_500)
    expect(log.slice(6)).toEqual(['drain c', 'stop c held'])
    const closed = supervisor.close(8_000)
    await pass(200)
    await closed
    expect(log.slice(8)).toEqual(['stop b held', 'stop d held'])
  })

  test('an instance that starts linking while it drains stays and resumes', async () => {
    const { leases, log, linking, supervisor } = setUp(['a', 'b'])
    await pass(1)
    leases.nodes = 2
    await pass(5_000)
    linking.add('b')
    await pass(400)
    expect(log.slice(2)).toEqual(['drain b', 'resume b'])
    expect(supervisor.size).toBe(2)
  })

  test('an instance that loses its lease while it drains is stopped at once', async () => {
    const { leases, lost, log } = setUp(['a', 'b'])
    await pass(1)
    leases.nodes = 2
    await pass(5_000)
    leases.rows.set('b', { owner: 'another', epoch: 2 })
    lost.get('b')?.()
    await pass(1_000)
    expect(log).toEqual(['run a 1', 'run b 1', 'drain b', 'stop b lost'])
  })

  test('a node that cannot renew stops its instances even if the store does not answer', async () => {
    const { leases, supervisor } = setUp(['a'])
    await pass(1)
    leases.renew = () => new Promise(() => undefined)
    await pass(10_500)
    expect(supervisor.size).toBe(0)
  })

  test('leases acquired while the node closes are released', async () => {
    const { leases, supervisor, log } = setUp(['a'])
    const acquire = leases.acquire.bind(leases)
    leases.acquire = async (owner, limit) => {
      const taken = await acquire(owner, limit)
      await new Promise(resolve => setTimeout(resolve, 1_000))
      return taken
    }
    await pass(500)
    expect(leases.rows.get('a')?.owner).toBe('me')
    const closed = supervisor.close(8_000)
    await pass(1_000)
    await closed
    expect(leases.rows.get('a')?.owner).toBeNull()
    expect(log).toEqual([])
  })

  test('a graceful stop releases every lease', async () => {
    const { leases, supervisor, log } = setUp(['a', 'b'])
    await pass(1)
    const closed = supervisor.close(8_000)
    await pass(200)
    await closed
    expect(log.slice(-2)).toEqual(['stop a held', 'stop b held'])
    expect([...leases.rows.values()].every(row => row.owner === null)).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })
})
