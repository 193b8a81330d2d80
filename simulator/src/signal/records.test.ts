import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { StorageChange } from '../types.ts'
import { Records } from './records.ts'

/** A storage whose writes end when the test ends them. */
function manualStorage() {
  const stored = new Map<string, string>()
  const writes: { end: (failure?: Error) => Promise<void> }[] = []
  const storage = {
    read: async () => new Map(Array.from(stored, ([key, value]) => [key, Buffer.from(value)])),
    write: (_scope: string, changes: readonly StorageChange[]) =>
      new Promise<void>((resolve, reject) => {
        const end = async (failure?: Error) => {
          for (const { key, value } of failure ? [] : changes) {
            if (value) stored.set(key, Buffer.from(value).toString())
            else stored.delete(key)
          }
          if (failure) reject(failure)
          else resolve()
          await settled()
        }
        writes.push({ end })
      }),
  }
  return { storage, stored, writes }
}

const settled = () => new Promise(resolve => setImmediate(resolve))

it('a record is durable only once its write has ended, and the record of an unfinished event is not written', async () => {
  const { storage, stored, writes } = manualStorage()
  const records = new Records(storage, 's')
  records.put('a', () => '1')
  records.seal()
  records.put('b', () => 'of an event under way')
  let durable = false
  const commit = records.commit().then(() => {
    durable = true
  })
  await settled()
  expect(durable).toBe(false)
  await writes[0]!.end()
  await commit
  expect([...stored]).toEqual([['a', '1']])
  records.seal()
  void records.commit()
  await settled()
  await writes[1]!.end()
  expect(stored.get('b')).toBe('of an event under way')
})

it('events during a write share the next write', async () => {
  const { storage, stored, writes } = manualStorage()
  const records = new Records(storage, 's')
  const commits = Array.from({ length: 10 }, async (_, n) => {
    records.put(`key ${n}`, () => 'x')
    records.seal()
    await records.commit()
  })
  await settled()
  await writes[0]!.end()
  await writes[1]?.end()
  await Promise.all(commits)
  expect(writes.length).toBeLessThanOrEqual(2)
  expect(stored.size).toBe(10)
})

it('a failed write rejects, and its records are written with the next one unless a newer value replaced them', async () => {
  const { storage, stored, writes } = manualStorage()
  const records = new Records(storage, 's')
  records.put('a', () => 'old')
  records.put('b', () => 'kept')
  records.seal()
  const failing = records.commit()
  await settled()
  records.put('a', () => 'new')
  records.seal()
  const next = records.commit()
  const failure = expect(failing).rejects.toThrow('disk')
  await writes[0]!.end(new Error('disk'))
  await failure
  await writes[1]!.end()
  await next
  expect(Object.fromEntries(stored)).toEqual({ a: 'new', b: 'kept' })
})

it('in the end the storage holds exactly the records that were put and not dropped, for any mix of events, commits and failures', async () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'c'),
    value: fc.option(fc.string(), { nil: null }),
    commit: fc.boolean(),
    fails: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async steps => {
      const { storage, stored, writes } = manualStorage()
      const records = new Records(storage, 's')
      const wanted = new Map<string, string>()
      let ended = 0
      const endWrites = async (failure?: Error) => {
        for (await settled(); ended < writes.length; await settled()) await writes[ended++]!.end(failure)
      }
      for (const { key, value, commit, fails } of steps) {
        if (value === null) records.drop(key)
        else records.put(key, () => value)
        if (value === null) wanted.delete(key)
        else wanted.set(key, value)
        records.seal()
        if (!commit) continue
        records.commit().catch(() => undefined)
        await endWrites(fails ? new Error('disk') : undefined)
      }
      const last = records.commit()
      await endWrites()
      await last
      expect(stored).toEqual(wanted)
    }),
    { numRuns: 50 },
  )
})
