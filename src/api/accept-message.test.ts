import { createHash } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import type { NewMessage } from '../store/messages/messages.ts'
import type { Store } from '../store/store.ts'
import { acceptMessage, composeMessage } from './accept-message.ts'

test('the digest of a text matches those of stored idempotency keys', async () => {
  const accept = vi.fn(async ({ id }: NewMessage) => ({ kind: 'accepted' as const, id }))
  const store = { messages: { accept } } as unknown as Store
  const message = composeMessage('inst_1', { to: '5511987654321', text: 'Olá "você"' }, 'key', 0)
  await acceptMessage({ store, traces: null }, message, { headers: {}, instanceId: 'inst_1' }, 0)
  const expected = createHash('sha256').update('["5511987654321","Olá \\"você\\""]').digest()
  expect(accept.mock.calls[0]![0].idempotency).toEqual({ key: 'key', digest: expected })
})
