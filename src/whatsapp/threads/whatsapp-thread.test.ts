import type { EventEmitter } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { FromThread, ToThread } from './messages.ts'
import { Suspects } from './suspects.ts'
import { type ThreadConnectionOptions, WhatsappThread, type WhatsappThreadOptions } from './whatsapp-thread.ts'
import { WhatsappThreads } from './whatsapp-threads.ts'

const hanging = vi.hoisted(() => ({ last: null as EventEmitter | null, posted: [] as string[] }))

/** A thread that answers only when the test does. */
vi.mock('node:worker_threads', async () => {
  const { EventEmitter } = await import('node:events')
  class HangingWorker extends EventEmitter {
    constructor() {
      super()
      hanging.last = this
      hanging.posted = []
    }

    postMessage(messages: ToThread[]): void {
      hanging.posted.push(...messages.map(({ kind }) => kind))
    }

    async terminate(): Promise<void> {
      this.emit('exit', 1)
    }
  }
  return { Worker: HangingWorker }
})

const LOADS_WITHIN_S = 120
const ANSWERS_WITHIN_S = 20

function open() {
  const deaths: string[] = []
  const store = { hints: { on: () => () => undefined } }
  const options = { data: {}, store, onLoaded: () => undefined, onDied: (error: Error) => deaths.push(error.message) }
  const thread = new WhatsappThread(options as unknown as WhatsappThreadOptions)
  const say = (message: FromThread) => hanging.last?.emit('message', [message])
  return { thread, deaths, say }
}

const passSeconds = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000)

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

test('a thread that hangs while it loads its code is ended after two minutes', async () => {
  const { thread, deaths } = open()
  await passSeconds(LOADS_WITHIN_S)
  expect(deaths).toEqual([])
  await passSeconds(1)
  expect(deaths).toEqual(['The thread did not answer.'])
  expect(thread.hasLoaded).toBe(false)
})

test('a thread that took a long time to load has as long as any other to answer', async () => {
  const { deaths, say } = open()
  await passSeconds(LOADS_WITHIN_S)
  say({ kind: 'heartbeat' })
  await passSeconds(ANSWERS_WITHIN_S)
  expect(deaths).toEqual([])
  await passSeconds(1)
  expect(deaths).toEqual(['The thread did not answer.'])
})

test('a connection that is stopped or revoked while its thread loads never starts, and the other connections of the thread do', async () => {
  const { thread, deaths, say } = open()
  const connect = (instanceId: string) =>
    thread.connect({ lease: { instanceId }, network: { kind: 'whatsapp' } } as unknown as ThreadConnectionOptions)
  const [stopped, revoked, other] = [connect('ins_1'), connect('ins_2'), connect('ins_3')]
  for (const connection of [stopped, revoked, other]) connection.start()
  revoked.revoke()
  await stopped.stop()
  say({ kind: 'heartbeat' })
  await vi.waitFor(() => expect(hanging.posted).toContain('start'))
  expect(hanging.posted.filter(kind => kind === 'start')).toHaveLength(1)
  expect({ stopped: stopped.hasEnded, other: other.hasEnded, deaths }).toEqual({
    stopped: true,
    other: false,
    deaths: [],
  })
})

test.each([
  { before: 'reconnecting', after: 'stopped' },
  // A linking link can still be given out.
  { before: 'linking', after: 'unlinked' },
])(
  'an instance that kills its threads while it is $before is $after from the time of the store on',
  async ({ before, after }) => {
    const isCause = vi.spyOn(Suspects.prototype, 'isCause').mockReturnValue(true)
    const record = vi.fn()
    const store = {
      connections: { find: async () => ({ state: before, goal: 'online', goalVersion: 1 }), record },
      hints: { on: () => () => undefined },
      clock: { now: () => 42 },
    }
    const logger = { level: 'info', info: () => undefined }
    type Options = ConstructorParameters<typeof WhatsappThreads>[0]
    const threads = new WhatsappThreads({ store, threads: 1, isReplaced: () => false, logger } as unknown as Options)
    const lease = { instanceId: 'ins_1', epoch: 1 }
    await threads.connect({ lease } as unknown as Parameters<WhatsappThreads['connect']>[0])
    expect(record).toHaveBeenCalledWith(lease, expect.objectContaining({ state: after, cause: 'thread_crashed' }), 42)
    isCause.mockRestore()
  },
)
