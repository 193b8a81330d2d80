import { expect, test, vi } from 'vitest'
import type { Settings } from './config.ts'
import { createConnector } from './connector.ts'
import { newInstanceId } from './domain/ids.ts'
import type { Sandbox } from './sandbox/sandbox.ts'
import type { ConnectionRecord } from './store/connections/connections.ts'
import type { WhatsappThreads } from './whatsapp/threads/whatsapp-threads.ts'

test('the simulated phone of an instance that could not be connected leaves the node', async () => {
  const network = { url: 'ws://127.0.0.1', linkBy: async () => undefined }
  const sandbox = { openNetwork: async () => network, leave: vi.fn(async () => undefined) }
  const threads = { connect: () => Promise.reject(new Error('The thread did not start.')) }
  const connect = createConnector(
    {} as Settings,
    sandbox as Partial<Sandbox> as Sandbox,
    threads as Partial<WhatsappThreads> as WhatsappThreads,
  )
  const lease = { instanceId: newInstanceId(), owner: 'node', epoch: 1 }
  const ends = { onLeaseLost: () => undefined, onCrashed: () => undefined }
  await expect(connect({ kind: 'sandbox' } as ConnectionRecord, lease, ends)).rejects.toThrow('did not start')
  expect(sandbox.leave).toHaveBeenCalledWith(lease.instanceId)
})
