import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const lookup = vi.hoisted(() => vi.fn((_name: string) => new Promise<unknown>(() => {})))
const availableParallelism = vi.hoisted(() => vi.fn<() => number>())
vi.mock('node:dns/promises', () => ({ lookup }))
vi.mock('node:os', async original => ({ ...(await original()), availableParallelism }))
beforeEach(() => {
  vi.useFakeTimers()
  lookup.mockClear()
})
afterEach(() => vi.useRealTimers())

/** Tests the proxy of an instance, in a thread of a machine with this many cores. */
async function setUp(cores: number) {
  vi.resetModules()
  availableParallelism.mockReturnValue(cores)
  const { createProxies } = await import('./proxies.ts')
  const open = createProxies()
  return (name: string, instanceId: string) =>
    open(`http://${name}.hangs.test:8080`, instanceId).probe(new URL('wss://web.whatsapp.com'), true)
}

test('proxies whose names hang occupy one thread for each instance', async () => {
  const probe = await setUp(4)
  const outcomes = [...'abcdefgh'].map(name => probe(name, 'inst_1'))
  await vi.waitFor(() => expect(lookup).toHaveBeenCalled())
  outcomes.push(probe('other', 'inst_2'))
  await vi.waitFor(() => expect(lookup).toHaveBeenCalledTimes(2))
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await Promise.all(outcomes)).not.toContain(null)
  expect(lookup.mock.calls.map(([name]) => name)).toEqual(['a.hangs.test', 'other.hangs.test'])
})

test.each([
  { cores: 4, threads: 6 },
  { cores: 8, threads: 3 },
  { cores: 32, threads: 2 },
])('proxies whose names hang occupy $threads threads of libuv for each thread on $cores cores', async expected => {
  const probe = await setUp(expected.cores)
  const outcomes = Array.from({ length: 20 }, (_, index) => probe(`${index}`, `inst_${index}`))
  await vi.waitFor(() => expect(lookup).toHaveBeenCalledTimes(expected.threads))
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await Promise.all(outcomes)).not.toContain(null)
  expect(lookup).toHaveBeenCalledTimes(expected.threads)
})

test('a proxy waits for its turn if each look-up takes 5 s', async () => {
  const probe = await setUp(4)
  lookup.mockImplementation(
    () => new Promise(resolve => setTimeout(resolve, 5_000, [{ address: '10.0.0.1', family: 4 }])),
  )
  const outcomes = Array.from({ length: 12 }, (_, index) => probe(`${index}`, `inst_${index}`))
  await vi.advanceTimersByTimeAsync(20_000)
  expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['PROXY_BLOCKED']))
})
