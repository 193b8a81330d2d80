import { expect, onTestFinished, test, vi } from 'vitest'
import { call } from './client.ts'

test('a change without an answer fails in the end, and says that it may have been made', async () => {
  const limit = new AbortController()
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal)
  vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
  onTestFinished(() => {
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
  })
  const answer = call('/accounts/acc_1/access', { method: 'PUT', body: {} })
  limit.abort()
  await expect(answer).rejects.toMatchObject({ code: 'unreachable', isChange: true })
})
