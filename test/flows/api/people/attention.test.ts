import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Role } from '../../../../src/domain/access.ts'
import type { Statistics } from '../../../../src/store/statistics/statistics.ts'
import { until } from '../../../until.ts'
import { ApiHarness, type Created } from '../harness.ts'
import { createPerson } from './people.ts'

const DISK = { freeBytes: 1, totalBytes: 2, isNearlyFull: true }

describe('what needs attention', () => {
  /** The calls of `troubles`: the instances that each was limited to, and a function that lets it continue. */
  const reads: { reached: unknown; resume: () => void }[] = []
  let isHeld = false
  let api: ApiHarness
  let own: Created
  let foreign: Created

  beforeAll(async () => {
    api = await ApiHarness.start({
      options: { diskSpace: async () => DISK },
      store: ({ statistics }) => ({ statistics: holding(statistics) }),
    })
    own = await api.createInstance('whatsapp', 'Own shop')
    foreign = await api.createInstance('whatsapp', 'Foreign shop')
    for (const { id } of [own, foreign]) await api.record(id, { state: 'stopped', reason: 'Stopped.' })
  })
  afterAll(async () => {
    await api[Symbol.asyncDispose]()
    vi.restoreAllMocks()
  })

  function holding(statistics: Statistics): Statistics {
    const troubles: Statistics['troubles'] = async (since, reached) => {
      await new Promise<void>(resume => {
        reads.push({ reached, resume })
        if (!isHeld) resume()
      })
      return statistics.troubles(since, reached)
    }
    return new Proxy(statistics, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return name === 'troubles' ? troubles : value.bind(target)
      },
    })
  }

  const read = async (headers: Record<string, string>) =>
    (await api.call({ path: '/admin/v1/attention', headers })).body.data

  test('covers only the instances of the account, even if many others need attention', async () => {
    const person = await createPerson(api, 'viewer', [own.id])
    const { total, instances } = await read(person.headers)
    expect([total, instances.map(({ id }: Created) => id)]).toEqual([1, [own.id]])
    expect(reads.at(-1)!.reached).toEqual([own.id])
  })

  test('is read once for all callers with access to the same instances', async () => {
    const people = [await createPerson(api, 'viewer', [foreign.id]), await createPerson(api, 'operator', [foreign.id])]
    const before = reads.length
    isHeld = true
    const running = [...people, ...people].map(({ headers }) => read(headers))
    await until('the read to start', () => reads.length > before)
    // The last read may arrive late, but counts as one that arrives during the first.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
    const last = read(people[0]!.headers)
    reads.at(-1)!.resume()
    isHeld = false
    for (const { instances } of await Promise.all([...running, last])) expect(instances[0].id).toBe(foreign.id)
    clock.mockRestore()
    expect(reads.length).toBe(before + 1)
  })

  test('is read again while an earlier read hangs', async () => {
    const person = await createPerson(api, 'viewer', [own.id, foreign.id])
    const before = reads.length
    isHeld = true
    const hanging = read(person.headers)
    await until('the read to hang', () => reads.length > before)
    isHeld = false
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 11_000)
    expect((await read(person.headers)).total).toBe(2)
    expect(reads.length).toBe(before + 2)
    reads[before]!.resume()
    expect((await hanging).total).toBe(2)
  })

  test.each<[Role, boolean, typeof DISK | null]>([
    ['owner', false, DISK],
    ['operator', false, DISK],
    ['operator', true, null],
    ['viewer', false, null],
    ['viewer', true, null],
  ])('shows the disk to owners and to operators of all instances: %s, limited: %s', async (role, isLimited, disk) => {
    const person = await createPerson(api, role, isLimited ? [own.id] : null)
    expect((await read(person.headers)).disk).toEqual(disk)
  })
})
