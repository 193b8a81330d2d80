import { pino } from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import type { ConnectionRecord } from '../store/connections/connections.ts'
import { InstanceRunner } from './instance-runner.ts'

afterEach(() => vi.useRealTimers())

/** A runner whose instance is linked. @returns the runner, the graces of its lanes, and when its parts stopped */
function setUp(webhookTimeoutMs: number, attemptsLastMs = 0) {
  const graces: (number | undefined)[] = []
  const stops: string[] = []
  const runner = new InstanceRunner({
    lease: { instanceId: 'inst_1', owner: 'me', epoch: 1 },
    store: {
      connections: { find: async () => ({ deleted: false }) as ConnectionRecord } as never,
      instances: {} as never,
    },
    lanes: {
      open: () => undefined,
      async shut(_, graceMs) {
        graces.push(graceMs)
        if (attemptsLastMs > 0)
          await new Promise(resolve => setTimeout(resolve, Math.min(attemptsLastMs, graceMs ?? 8_000)))
        stops.push(`lanes ${performance.now()}`)
      },
    },
    webhookTimeoutMs,
    connect: async () => ({
      start: () => undefined,
      isLinking: false,
      revoke: () => undefined,
      stop: async () => void stops.push(`connection ${performance.now()}`),
    }),
    onErased: async () => undefined,
    onLeaseLost: () => undefined,
    onCrashed: () => undefined,
    logger: pino({ level: 'silent' }),
  })
  return { runner, graces, stops }
}

test.each([
  [100, 1_100],
  [10_000, 11_000],
  [45_000, 46_000],
  [600_000, 61_000],
])('with attempts of up to %i ms, a drain waits for %i ms', async (timeoutMs, graceMs) => {
  const { runner, graces } = setUp(timeoutMs)
  await runner.drain()
  expect(graces).toEqual([graceMs])
  await runner.stop(true)
})

test.each([
  { why: 'no attempt is running', attemptsLastMs: 0, stops: ['lanes 0', 'connection 0'] },
  { why: 'attempts end in time', attemptsLastMs: 900, stops: ['lanes 900', 'connection 900'] },
  { why: 'an endpoint hangs', attemptsLastMs: 10_000, stops: ['connection 5500', 'lanes 8000'] },
])(
  'a planned stop closes the connection after the attempts, but early enough for the connection to stop: $why',
  async ({ attemptsLastMs, stops: expected }) => {
    vi.useFakeTimers({ now: 0 })
    const { runner, stops } = setUp(10_000, attemptsLastMs)
    await vi.advanceTimersByTimeAsync(0)
    const stopped = runner.stop(true, 8_000)
    await vi.advanceTimersByTimeAsync(8_000)
    await stopped
    expect(stops).toEqual(expected)
  },
)

test('a stop without the lease closes the connection at once', async () => {
  vi.useFakeTimers({ now: 0 })
  const { runner, stops } = setUp(10_000, 10_000)
  await vi.advanceTimersByTimeAsync(0)
  const stopped = runner.stop(false)
  await vi.advanceTimersByTimeAsync(8_000)
  await stopped
  expect(stops).toEqual(['connection 0', 'lanes 8000'])
})
