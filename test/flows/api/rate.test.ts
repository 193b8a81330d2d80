import { expect, test } from 'vitest'
import type { Admitted } from '../../../src/store/admission/admission.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { ApiHarness } from './harness.ts'

test.each(ONE_STORE)(
  'on %s the 101st call in a window is refused, whatever the calls were; another instance is not affected',
  async on => {
    await using api = await ApiHarness.start({ on, ratePerMinute: 100 })
    const instance = await api.createConnected()
    const other = await api.createConnected()
    const calls = [
      () => api.send(instance, { to: '5511987654321', text: 'x' }),
      () => api.send(instance, { to: 'x', text: 'x' }),
      () => api.send(instance, 'not json'),
      () => api.call({ path: '/v1/instance', key: instance.token }),
      () => api.call({ path: '/v1/webhooks/inst_other', key: instance.token }),
      () => api.call({ path: '/v1/nope', key: instance.token }),
      () => api.call({ method: 'DELETE', path: '/v1/instance', key: instance.token }),
      () => api.send(instance, 'x', { 'content-type': 'text/plain' }),
      () => api.send(instance, 'x'.repeat(1_048_577)),
      () => api.call({ path: '/v1/messages/msg_1', key: instance.token }),
    ]
    const remaining: number[] = []
    for (let n = 0; n < 100; n += 1) {
      const answer = await calls[n % calls.length]!()
      expect(answer.status).not.toBe(429)
      expect(answer.headers.get('ratelimit-limit')).toBe('100')
      expect(answer.headers.get('retry-after')).toBeNull()
      const reset = Number(answer.headers.get('ratelimit-reset'))
      expect(Number.isInteger(reset) && reset >= 1 && reset <= 60).toBe(true)
      remaining.push(Number(answer.headers.get('ratelimit-remaining')))
    }
    expect(remaining).toEqual(Array.from({ length: 100 }, (_, n) => 99 - n))

    for (const call of calls) {
      const answer = await call()
      expect([answer.status, answer.body.error.code]).toEqual([429, 'rate_limit_exceeded'])
      expect(answer.headers.get('ratelimit-remaining')).toBe('0')
      expect(answer.headers.get('retry-after')).toBe(answer.headers.get('ratelimit-reset'))
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
    expect((await api.call({ path: '/v1/instance', key: other.token })).status).toBe(200)
    expect((await api.call({ path: '/v1/instance' })).status).toBe(401)
  },
)

test('Retry-After is whole seconds, rounded up', async () => {
  let admitted: Partial<Admitted> = {}
  const admission = {
    admit: async () => ({
      instanceId: 'inst_a',
      key: null,
      calls: 101,
      limit: 100,
      resetMs: 1,
      ...admitted,
    }),
    isValid: async () => true,
  }
  await using api = await ApiHarness.start({ store: () => ({ admission }) })
  for (const [resetMs, seconds] of [
    [1, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [59_999.5, '60'],
  ] as const) {
    admitted = { resetMs }
    const answer = await api.call({ path: '/v1/instance', key: 'x' })
    expect([answer.headers.get('retry-after'), answer.headers.get('ratelimit-reset')]).toEqual([seconds, seconds])
  }
})
