import type { Account } from './account.ts'
import { node } from './nodes.ts'

/** Tells the client that is logged in, if one is, that its phone has removed it. */
export function unlinkClient(account: Account): void {
  const { client } = account
  account.client = null
  client?.end(node('stream:error', { code: '401' }, [node('conflict', { type: 'device_removed' })]))
}
