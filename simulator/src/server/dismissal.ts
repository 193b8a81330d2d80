import type { Account } from '../account.ts'
import { type Node, node } from '../wire/nodes.ts'

/** Notifies the client, if one is logged in, that its phone has removed it. */
export function unlinkClient(account: Account): void {
  dismissClient(account, node('stream:error', { code: '401' }, [node('conflict', { type: 'device_removed' })]))
}

/** Sends the client, if one is logged in, a last stanza and closes its connection. */
export function dismissClient(account: Account, last: Node): void {
  const { client } = account
  account.client = null
  client?.end(last)
}
