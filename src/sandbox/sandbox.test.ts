import { createSimulatorWorker, SimulatorError, type SimulatorWorker } from '@pombal/simulator/worker'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { newInstanceId } from '../domain/ids.ts'
import type { Store } from '../store/store.ts'
import { Sandbox } from './sandbox.ts'

vi.mock('@pombal/simulator/worker', async original => ({
  ...(await original<typeof import('@pombal/simulator/worker')>()),
  createSimulatorWorker: vi.fn(),
}))

const CRASHED = new SimulatorError('crashed', 'the thread crashed')

/** A simulator's thread as the sandbox sees it. */
class Thread {
  url = 'ws://127.0.0.1:4001/ws/chat'
  readonly media = { hosts: ['127.0.0.1:4002'], certificate: '' }
  crash: (error: SimulatorError) => void = () => undefined
  readonly openAccount = vi.fn(async () => ({ phone: '88800000000001' }))
  readonly closeAccount = vi.fn(async () => undefined)
  readonly switchPhone = vi.fn(async () => undefined)
  readonly terminate = vi.fn(async () => undefined)
  readonly close = vi.fn(async () => undefined)

  onExit(listener: (error: SimulatorError) => void): void {
    this.crash = listener
  }
}

let started: { at: number; port: number | undefined; thread: Thread }[]
let prepare: (thread: Thread) => void
beforeEach(() => {
  vi.useFakeTimers()
  started = []
  prepare = () => undefined
  vi.mocked(createSimulatorWorker).mockImplementation(async options => {
    const thread = new Thread()
    prepare(thread)
    started.push({ at: performance.now(), port: options?.port, thread })
    return thread as Partial<SimulatorWorker> as SimulatorWorker
  })
})
afterEach(() => {
  vi.useRealTimers()
})

/** The phones of other nodes are off. */
function create() {
  const phoneOrders = {
    take: async () => [],
    leave: async () => undefined,
    takeAnswer: async () => JSON.stringify({ kind: 'done', report: { on: false } }),
  }
  const store = { phoneOrders, hints: { on: () => () => undefined }, sandbox: {} }
  const sandbox = new Sandbox(store as unknown as Store, pino({ level: 'silent' }))
  return { sandbox, lease: { instanceId: newInstanceId(), owner: 'node', epoch: 1 } }
}

async function open() {
  const { sandbox, lease } = create()
  const onMoved = vi.fn()
  await sandbox.openNetwork(lease, onMoved)
  return { sandbox, instanceId: lease.instanceId, onMoved }
}

/** Asks the node that runs the phone. */
async function isPhoneOn(sandbox: Sandbox, instanceId: string): Promise<boolean> {
  const on = sandbox.isPhoneOn(instanceId)
  await vi.advanceTimersByTimeAsync(1_000)
  return on
}

test('a restart that fails frees the port and is repeated, less and less often', async () => {
  const { sandbox, instanceId } = await open()
  await sandbox.switchPhone(instanceId, false)
  prepare = thread => thread.switchPhone.mockRejectedValueOnce(CRASHED)
  const crashedAt = performance.now()
  started[0]!.thread.crash(CRASHED)
  await vi.advanceTimersByTimeAsync(3_000)
  prepare = () => undefined
  await vi.advanceTimersByTimeAsync(4_000)
  const again = started.slice(1)
  expect(again.map(({ at }) => at - crashedAt)).toEqual([1_000, 3_000, 7_000])
  expect(again.map(({ port }) => port)).toEqual([4_001, 4_001, 4_001])
  expect(again.map(({ thread }) => thread.terminate.mock.calls.length)).toEqual([1, 1, 0])
  expect(again[2]!.thread.switchPhone).toHaveBeenCalledWith(instanceId, false)
  await sandbox.close()
})

test('a thread that has run for a minute is restarted at once', async () => {
  const { sandbox } = await open()
  for (const index of [0, 1, 2]) {
    await vi.advanceTimersByTimeAsync(60_000)
    started[index]!.thread.crash(CRASHED)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(started).toHaveLength(index + 2)
  }
  await sandbox.close()
})

test('a call that meets a crashed thread is refused with 503, and the phone stays as it was', async () => {
  const { sandbox, instanceId } = await open()
  started[0]!.thread.switchPhone.mockRejectedValue(CRASHED)
  await expect(sandbox.switchPhone(instanceId, false)).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(await sandbox.isPhoneOn(instanceId)).toBe(true)
  started[0]!.thread.crash(CRASHED)
  vi.mocked(createSimulatorWorker).mockRejectedValue(CRASHED)
  const written = sandbox.writeAs(instanceId, { from: '5511912345678', text: 'x' })
  await expect(written).rejects.toMatchObject({ code: 'service_unavailable' })
  await sandbox.close()
})

test('a phone that could not be added to the network is asked on the node that runs it', async () => {
  prepare = thread => thread.openAccount.mockRejectedValueOnce(CRASHED)
  const { sandbox, lease } = create()
  await expect(sandbox.openNetwork(lease, () => undefined)).rejects.toThrow(CRASHED)
  expect(await isPhoneOn(sandbox, lease.instanceId)).toBe(false)
  await sandbox.openNetwork(lease, () => undefined)
  expect(await isPhoneOn(sandbox, lease.instanceId)).toBe(true)
  await sandbox.close()
})

test('a phone leaves the node although the restart of the network fails meanwhile', async () => {
  const { sandbox, instanceId } = await open()
  const restarted = Promise.withResolvers<SimulatorWorker>()
  vi.mocked(createSimulatorWorker).mockReturnValueOnce(restarted.promise)
  started[0]!.thread.crash(CRASHED)
  await vi.advanceTimersByTimeAsync(1_000)
  const left = sandbox.leave(instanceId)
  restarted.reject(CRASHED)
  await left
  expect(await isPhoneOn(sandbox, instanceId)).toBe(false)
  await sandbox.close()
})

test('if another program has taken the port, the network restarts on another one, and the instances connect to it', async () => {
  const { sandbox, onMoved } = await open()
  vi.mocked(createSimulatorWorker).mockRejectedValueOnce(new SimulatorError('port_in_use', 'the port is taken'))
  prepare = thread => {
    thread.url = 'ws://127.0.0.1:4003/ws/chat'
  }
  started[0]!.thread.crash(CRASHED)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(started.map(({ port }) => port)).toEqual([0, 0])
  expect(onMoved).toHaveBeenCalledOnce()
  started[1]!.thread.crash(CRASHED)
  await vi.advanceTimersByTimeAsync(4_000)
  expect(started.map(({ port }) => port)).toEqual([0, 0, 4_003])
  expect(onMoved).toHaveBeenCalledOnce()
  await sandbox.close()
})
