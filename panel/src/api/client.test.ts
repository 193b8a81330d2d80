import { afterEach, expect, test, vi } from 'vitest'
import { call } from './client.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

test('a change without an answer fails in the end, and says that it may have been made', async () => {
  const limit = new AbortController()
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal)
  vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
  const answer = call('/accounts/acc_1/access', { method: 'PUT', body: {} })
  limit.abort()
  await expect(answer).rejects.toMatchObject({ code: 'unreachable', isChange: true })
})

test.each(['GET', 'POST'] as const)('a %s works in browsers that cannot combine signals', async method => {
  vi.spyOn(AbortSignal, 'any').mockImplementation(() => {
    throw new TypeError('AbortSignal.any is not a function')
  })
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ data: [] })))
  expect(await call('/instances', { method })).toEqual({ data: [] })
})

test('a change whose answer breaks off may have been made', async () => {
  const body = () => new ReadableStream({ start: stream => stream.error(new TypeError('network error')) })
  const answers = [new Response(body(), { status: 201 }), new Response(body(), { status: 400 })]
  vi.stubGlobal('fetch', () => Promise.resolve(answers.shift()))
  const change = () => call('/instances/inst_1/keys', { method: 'POST', body: {} })
  await expect(change()).rejects.toMatchObject({ code: 'unreachable', isChange: true })
  await expect(change()).rejects.toMatchObject({ code: 'refused_by_proxy', isChange: true })
})
