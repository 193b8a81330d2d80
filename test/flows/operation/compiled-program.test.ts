import { afterAll, beforeAll, expect, test } from 'vitest'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** Most tests run the source. These concern what the bundler could change. */

let service: Service
beforeAll(async () => {
  service = await new Service().start()
})
afterAll(() => service?.dispose())

test('a path with an invalid percent-encoding is checked, counted and logged like any other', async () => {
  const { id, token } = await service.admin.createInstance('sandbox', 'Escapes')
  const remaining = []
  for (const path of ['messages/%zz', 'messages/%ff', `webhooks/${id}%`, 'webhooks/%E2%82']) {
    const get = (key: string) =>
      fetch(`${service.url}/v1/${path}`, { headers: { authorization: `Bearer ${key}`, 'x-request-id': 'escapes' } })
    const refused = await get('pmb_wrong')
    expect([path, refused.status, refused.headers.get('x-request-id')]).toEqual([path, 401, 'escapes'])
    const unknown = await get(token)
    expect([path, unknown.status, unknown.headers.get('x-request-id')]).toEqual([path, 404, 'escapes'])
    remaining.push(Number(unknown.headers.get('ratelimit-remaining')))
  }
  const [first = 0] = remaining
  expect(remaining).toEqual([first, first - 1, first - 2, first - 3])
  const logged = () =>
    service.logLines.filter(({ msg, requestId }) => msg === 'request.answered' && requestId === 'escapes')
  await until('the lines of all calls', () => logged().length === 8)
})
