import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { ConnectionRecord } from '../store/connections/connections.ts'
import { InstanceRunner } from './instance-runner.ts'

/** A runner whose instance is linked. @returns also the graces with which its lanes were shut */
function setUp(webhookTimeoutMs: number) {
  const graces: (number | undefined)[] = []
  const runner = new InstanceRunner({
    lease: { instanceId: 'inst_1', owner: 'me', epoch: 1 },
    store: {
      connections: { find: async () => ({ deleted: false }) as ConnectionRecord } as never,
      instances: {} as never,
    },
    lanes: { open: () => undefined, shut: async (_, graceMs) => void graces.push(graceMs) },
    webhookTimeoutMs,
    connect: async () => ({ start: () => undefined, isLinking: false, revoke: () => undefined, stop: async () => {} }),
    onErased: async () => undefined,
    onLeaseLost: () => undefined,
    onCrashed: () => undefined,
    logger: pino({ level: 'silent' }),
  })
  return { runner, graces }
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
