import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createRequestIds } from './request-id.ts'

function request(id?: string): IncomingMessage {
  return { headers: { 'x-request-id': id } } as unknown as IncomingMessage
}

test("a caller's ID of 1 to 128 visible ASCII characters is kept", () => {
  const idOf = createRequestIds()
  for (const id of ['a', '~!#', 'x'.repeat(128)]) expect(idOf(request(id))).toBe(id)
  for (const id of ['', ' ', 'a b', 'x'.repeat(129), 'é', undefined]) expect(idOf(request(id))).toMatch(/^req_/)
})

test('generated IDs are unique, also across restarts', () => {
  const [one, two] = [createRequestIds(), createRequestIds()]
  const ids = Array.from({ length: 1_000 }, () => [one(request()), two(request())]).flat()
  expect(new Set(ids).size).toBe(2_000)
})
