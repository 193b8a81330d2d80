import { createHash } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import type { NewMessage } from '../store/messages/messages.ts'
import type { Store } from '../store/store.ts'
import { acceptMessage, newMessage } from './accept-message.ts'

test('the digest of a text matches those of stored idempotency keys', async () => {
  const accept = vi.fn(async ({ id }: NewMessage) => ({ kind: 'accepted' as const, id }))
  const store = { messages: { accept } } as unknown as Store
  const message = newMessage('inst_1', { to: '5511987654321', text: 'Olá "você"' }, 'key', 0)
  await acceptMessage({ store, traces: null }, message, { headers: {}, instanceId: 'inst_1' }, 0)
  const expected = createHash('sha256').update('["5511987654321","Olá \\"você\\""]').digest()
  expect(accept.mock.calls[0]![0].idempotency).toEqual({ key: 'key', digest: expected })
})

test('the digest does not depend on the order of the fields in `metadata`, but on the order in its lists', () => {
  const digest = (metadata: Record<string, unknown>) =>
    newMessage('inst_1', { to: '5511987654321', text: 'Oi', extras: { metadata } }, 'key', 0).idempotency!.digest
  const first = digest({ order: 7, lines: [{ id: 1, name: 'a' }, null] })
  expect(digest({ lines: [{ name: 'a', id: 1 }, null], order: 7 })).toEqual(first)
  expect(digest({ order: 7, lines: [null, { id: 1, name: 'a' }] })).not.toEqual(first)
})
