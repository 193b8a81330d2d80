import { afterEach, expect, test, vi } from 'vitest'
import { createProxies } from './proxies.ts'

const lookup = vi.hoisted(() => vi.fn((_name: string) => new Promise<never>(() => {})))
vi.mock('node:dns/promises', () => ({ lookup }))
afterEach(() => vi.useRealTimers())

test('proxies whose names hang occupy one thread for each instance, and two in all', async () => {
  vi.useFakeTimers()
  const open = createProxies()
  const probe = (name: string, instanceId: string) =>
    open(`http://${name}.hangs.test:8080`, instanceId).probe(new URL('wss://web.whatsapp.com'), true)
  const outcomes = [...'abcdefgh'].map(name => probe(name, 'inst_1'))
  await vi.waitFor(() => expect(lookup).toHaveBeenCalled())
  outcomes.push(probe('other', 'inst_2'), probe('third', 'inst_3'))
  await vi.waitFor(() => expect(lookup).toHaveBeenCalledTimes(2))
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await Promise.all(outcomes)).not.toContain(null)
  expect(lookup.mock.calls.map(([name]) => name)).toEqual(['a.hangs.test', 'other.hangs.test'])
})
