import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { StoreUnavailable } from '../errors.ts'
import type { Backend, Session, Transaction } from './backend.ts'
import { Fence, type Operation } from './operation.ts'
import { Statements } from './statement.ts'
import { Writer } from './writer.ts'

interface LedgerTransaction extends Transaction {
  readonly open: string[]
}

/** A database double that records commits and fails on demand. */
class Ledger implements Backend {
  readonly commitsAtOnce = 1
  readonly reader = {} as Session
  autocommit: Session | null = null
  readonly committed: string[][] = []
  /** Commits that do not wait for the disk. */
  readonly unsynced: string[][] = []
  /** Errors of the next commits, in order. */
  readonly commitErrors: Error[] = []
  /** Commits of transactions that begin now wait for this promise. */
  hold: Promise<void> = Promise.resolve()
  /** How long the transactions wait for locks. */
  readonly lockTimeouts: (number | undefined)[] = []

  async begin(lockTimeoutMs?: number): Promise<LedgerTransaction> {
    const { hold } = this
    this.lockTimeouts.push(lockTimeoutMs)
    const open: string[] = []
    const unused = () => Promise.reject(new Error('This ledger takes no queries.'))
    return {
      open,
      query: unused,
      run: unused,
      each: unused,
      post: unused,
      commit: async (isSynced = true) => {
        await hold
        const error = this.commitErrors.shift()
        if (error !== undefined) throw error
        this.committed.push(open)
        if (!isSynced) this.unsynced.push(open)
      },
      rollback: async () => undefined,
    }
  }

  classify(error: unknown): 'unavailable' | 'conflict' | 'locked' | 'unit' {
    if (error instanceof Error && error.message === 'conflict') return 'conflict'
    if (error instanceof Error && error.message === 'locked') return 'locked'
    return error instanceof Error && error.message === 'gone' ? 'unavailable' : 'unit'
  }

  async close(): Promise<void> {}
}

function setUp(commitsAtOnce = 1) {
  const ledger = new Ledger()
  const runs = { failures: [] as string[] }
  const time = { now: 0 }
  const note: Operation<string, string> = {
    name: 'note',
    instanceId: input => input.split('/')[1] ?? 'a',
    keys: () => [],
    async run(tx, inputs) {
      for (const input of inputs) {
        if (input.startsWith('locked')) {
          time.now += 10
          throw new Error('locked')
        }
        const failure = runs.failures[0]
        if (input === 'bad' || failure !== undefined) throw new Error(runs.failures.shift() ?? 'bad')
        ;(tx as LedgerTransaction).open.push(input)
      }
      return inputs.map(input => `${input}!`)
    },
  }
  const foreground = { hasPriority: false }
  const writer = new Writer(ledger, new Fence(new Statements('sqlite')), {
    commitsAtOnce,
    foreground,
    lockTimeoutMs: 500,
    clock: { steady: () => time.now },
  })
  return { ledger, writer, note, runs, time, foreground }
}

describe('the writer', () => {
  test('writes that arrive together share a commit and resolve after it', async () => {
    const { ledger, writer, note } = setUp()
    const outcomes = await Promise.all(['1', '2', '3'].map(input => writer.write(note, input)))
    expect(outcomes).toEqual(['1!', '2!', '3!'])
    expect(ledger.committed).toEqual([['1', '2', '3']])
  })

  test('a commit waits for the disk unless a power failure may undo each of its units', async () => {
    const { ledger, writer, note } = setUp()
    const lesser = { ...note, mayBeUndone: true }
    await Promise.all([writer.write(lesser, '1'), writer.write(lesser, '2')])
    await writer.write(note, '3')
    await Promise.all([writer.write(lesser, '4'), writer.write(note, '5')])
    expect(ledger.committed).toEqual([['1', '2'], ['3'], ['4', '5']])
    expect(ledger.unsynced).toEqual([['1', '2']])
  })

  test('writes that arrive during a commit share the next one', async () => {
    const { ledger, writer, note } = setUp()
    const first = writer.write(note, '1').then(() => Promise.all([writer.write(note, '2'), writer.write(note, '3')]))
    await first
    expect(ledger.committed).toEqual([['1'], ['2', '3']])
  })

  test('a failing unit rejects alone; the others are committed in their order', async () => {
    const { ledger, writer, note } = setUp()
    const inputs = ['1', '2', 'bad', '3', 'bad', '4', '5']
    const outcomes = await Promise.allSettled(inputs.map(input => writer.write(note, input)))
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(inputs.map(input => input !== 'bad'))
    expect(ledger.committed.flat()).toEqual(['1', '2', '3', '4', '5'])
  })

  test('a failed commit rejects every unit as unavailable and is not retried', async () => {
    const { ledger, writer, note } = setUp()
    ledger.commitErrors.push(new Error('disk full'))
    const outcomes = await Promise.allSettled(['1', '2'].map(input => writer.write(note, input)))
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'StoreUnavailable' } })
    }
    expect(ledger.committed).toEqual([])
    expect(await writer.write(note, '3')).toBe('3!')
  })

  test('an unreachable database rejects every unit of the commit', async () => {
    const { ledger, writer, note, runs } = setUp()
    runs.failures.push('gone')
    const outcomes = await Promise.allSettled(['1', '2'].map(input => writer.write(note, input)))
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'StoreUnavailable' } })
    }
    expect(ledger.committed).toEqual([])
  })

  test('a commit that conflicts with another node is retried', async () => {
    const { ledger, writer, note, runs } = setUp()
    runs.failures.push('conflict', 'conflict')
    expect(await Promise.all(['1', '2'].map(input => writer.write(note, input)))).toEqual(['1!', '2!'])
    expect(ledger.committed).toEqual([['1', '2']])
  })

  test('a unit that waits too long for a lock rejects as unavailable; the others are committed without it', async () => {
    const { ledger, writer, note } = setUp()
    const independent = { ...note, isIndependent: true }
    const inputs = ['1', '2', '3', 'locked', '4', '5', '6', '7']
    const outcomes = await Promise.allSettled(inputs.map(input => writer.write(independent, input)))
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(inputs.map(input => input !== 'locked'))
    expect(outcomes[3]).toMatchObject({ reason: { name: 'StoreUnavailable' } })
    expect(ledger.committed.flat()).toEqual(['1', '2', '3', '4', '5', '6', '7'])
    expect(ledger.lockTimeouts).toEqual([500, 100, 100, 100, 100, 100, 100])
  })

  test('no unit overtakes one of its instance that waits too long for a lock, unless it is independent', async () => {
    const { ledger, writer, note } = setUp()
    const inputs = ['1/a', 'locked/a', '2/a', '3/b', '4/b']
    const outcomes = await Promise.allSettled(inputs.map(input => writer.write(note, input)))
    expect(outcomes.map(({ status }) => status)).toEqual([...Array(3).fill('rejected'), ...Array(2).fill('fulfilled')])
    expect(ledger.committed).toEqual([['3/b', '4/b']])
  })

  test('many units that wait for locks delay the next commits for a limited time only', async () => {
    const { writer, note, time } = setUp()
    const independent = { ...note, isIndependent: true }
    const locked = Array.from({ length: 120 }, (_, n) => writer.write(independent, `locked ${n}`))
    for (const outcome of await Promise.allSettled(locked)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'StoreUnavailable' } })
    }
    expect(time.now).toBeLessThan(1_200)
    expect(await writer.write(independent, '1')).toBe('1!')
  })

  test('a statement that can run alone shares no commit with other writes', async () => {
    const { ledger, writer, note } = setUp()
    const alone: string[][] = []
    ledger.autocommit = {} as Session
    const single = {
      ...note,
      async runAlone(_: Session, inputs: readonly string[]) {
        alone.push([...inputs])
        return inputs.map(input => `${input}!`)
      },
    }
    const writes = [note, single, single, note, single].map((operation, n) => writer.write(operation, `${n}/${n}`))
    expect(await Promise.all(writes)).toEqual(['0/0!', '1/1!', '2/2!', '3/3!', '4/4!'])
    expect(ledger.committed).toEqual([['0/0', '3/3']])
    expect(alone).toEqual([['1/1', '2/2', '4/4']])
  })

  test('an urgent write goes first', async () => {
    const { ledger, writer, note } = setUp()
    await Promise.all([writer.write(note, '1'), writer.write({ ...note, urgent: true }, 'urgent')])
    expect(ledger.committed.flat()).toEqual(['urgent', '1'])
  })

  test('while a commit hangs, new writes are refused, except urgent ones', async () => {
    const { ledger, writer, note, time } = setUp()
    const { promise, resolve } = Promise.withResolvers<void>()
    ledger.hold = promise
    const first = writer.write(note, '1')
    await new Promise(done => setImmediate(done))
    const second = writer.write(note, '2')
    time.now = 5_001
    await expect(writer.write(note, '3')).rejects.toThrow(StoreUnavailable)
    const urgent = writer.write({ ...note, urgent: true }, '4')
    resolve()
    expect(await Promise.all([first, second, urgent])).toEqual(['1!', '2!', '4!'])
    expect(await writer.write(note, '5')).toBe('5!')
  })

  test('writes that wait for a slow commit get a commit of their own, unless they belong to the same instance', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { ledger, writer, note, time } = setUp(2)
    const { promise, resolve } = Promise.withResolvers<void>()
    ledger.hold = promise
    const first = writer.write(note, '1/a')
    await new Promise(done => setImmediate(done))
    ledger.hold = Promise.resolve()
    const later = Promise.all([writer.write(note, '2/a'), writer.write(note, '3/b')])
    await new Promise(done => setImmediate(done))
    await vi.advanceTimersByTimeAsync(30)
    expect(ledger.committed).toEqual([])
    time.now = 10
    await vi.advanceTimersByTimeAsync(10)
    expect(ledger.committed).toEqual([['3/b']])
    time.now = 5_011
    await expect(writer.write(note, '5/a')).rejects.toThrow(StoreUnavailable)
    const fourth = writer.write(note, '4/c')
    resolve()
    await Promise.all([first, later, fourth])
    expect(ledger.committed.flat().sort()).toEqual(['1/a', '2/a', '3/b', '4/c'])
    expect(ledger.committed.flat().indexOf('1/a')).toBeLessThan(ledger.committed.flat().indexOf('2/a'))
  })

  describe('independent writes, if commits run concurrently,', () => {
    test('do not wait for a commit of their instance', async () => {
      const { ledger, writer, note } = setUp(2)
      const { promise, resolve } = Promise.withResolvers<void>()
      ledger.hold = promise
      const ordered = writer.write(note, '1/a')
      await new Promise(done => setImmediate(done))
      ledger.hold = Promise.resolve()
      await writer.write({ ...note, isIndependent: true }, '2/a')
      expect(ledger.committed).toEqual([['2/a']])
      resolve()
      await ordered
    })

    test('have commits of their own if they may be undone', async () => {
      const { ledger, writer, note } = setUp(2)
      const independent = { ...note, isIndependent: true }
      const { promise, resolve } = Promise.withResolvers<void>()
      ledger.hold = promise
      const undoable = writer.write({ ...independent, mayBeUndone: true }, '1/a')
      await new Promise(done => setImmediate(done))
      ledger.hold = Promise.resolve()
      await Promise.all([writer.write(note, '2/a'), writer.write(independent, '3/a')])
      expect(ledger.committed.toSorted()).toEqual([['2/a'], ['3/a']])
      resolve()
      await undoable
      expect(ledger.unsynced).toEqual([['1/a']])
    })

    test('yield to the foreground if they may be undone', async () => {
      const { ledger, writer, note, foreground } = setUp(2)
      const independent = { ...note, isIndependent: true }
      foreground.hasPriority = true
      const undoable = writer.write({ ...independent, mayBeUndone: true }, '1/a')
      await writer.write(independent, '2/a')
      await writer.write(note, '3/a')
      expect(ledger.committed).toEqual([['2/a'], ['3/a']])
      foreground.hasPriority = false
      await undoable
      expect(ledger.committed.at(-1)).toEqual(['1/a'])
    })

    test('keep their order with the rare writes of their instance', async () => {
      const { ledger, writer, note } = setUp(2)
      const independent = { ...note, isIndependent: true }
      const { promise, resolve } = Promise.withResolvers<void>()
      ledger.hold = promise
      const first = writer.write(independent, '1/a')
      await new Promise(done => setImmediate(done))
      ledger.hold = Promise.resolve()
      const others = ['2/a', '3/a'].map(input => writer.write({ ...note, isRare: true }, input))
      const last = writer.write(independent, '4/a')
      await Promise.all([writer.write(note, '5/b'), writer.write(note, '6/b')])
      expect(ledger.committed).toEqual([['5/b', '6/b']])
      let closed = false
      const closing = writer.close().then(() => {
        closed = true
      })
      await new Promise(done => setImmediate(done))
      expect(closed).toBe(false)
      resolve()
      await Promise.all([first, ...others, last, closing])
      expect(ledger.committed.slice(1)).toEqual([['1/a'], ['2/a', '3/a'], ['4/a']])
    })

    test('that waited for a rare write are not overtaken', async () => {
      const { ledger, writer, note } = setUp(2)
      const independent = { ...note, isIndependent: true }
      const { promise, resolve } = Promise.withResolvers<void>()
      ledger.hold = promise
      const rare = writer.write({ ...note, isRare: true }, '1/a')
      await new Promise(done => setImmediate(done))
      ledger.hold = Promise.resolve()
      const followers = [
        writer.write(independent, '2/a'),
        writer.write({ ...note, isRare: true }, '3/a'),
        writer.write(independent, '4/a'),
      ]
      await writer.write(independent, '5/b')
      expect(ledger.committed).toEqual([['5/b']])
      resolve()
      await rare
      const last = writer.write(independent, '6/a')
      await Promise.all([...followers, last])
      expect(ledger.committed.flat().filter(unit => unit.endsWith('a'))).toEqual(['1/a', '2/a', '3/a', '4/a', '6/a'])
    })
  })

  test('a full batch gets a commit of its own immediately', async () => {
    const { ledger, writer, note } = setUp(2)
    const { promise, resolve } = Promise.withResolvers<void>()
    ledger.hold = promise
    const first = writer.write(note, '0/a')
    await new Promise(done => setImmediate(done))
    ledger.hold = Promise.resolve()
    const others = Array.from({ length: 128 }, (_, index) => writer.write(note, `${index + 1}/b`))
    await Promise.all(others)
    expect(ledger.committed.map(units => units.length)).toEqual([128])
    resolve()
    await first
  })

  test('closing waits for accepted writes and refuses new ones', async () => {
    const { ledger, writer, note } = setUp()
    const accepted = writer.write(note, '1')
    const closed = writer.close()
    await expect(writer.write(note, '2')).rejects.toThrow(StoreUnavailable)
    await closed
    expect(await accepted).toBe('1!')
    expect(ledger.committed).toEqual([['1']])
  })
})
