/**
 * An account that may write to nobody new for a time: WhatsApp refuses such messages with 463, says so when asked, and tells
 * the client. What Baileys reads of it is known (`messages-recv.js`, `socket.js`); when WhatsApp does so is not.
 */
import type { Account } from './account.ts'
import { createMessageId } from './content.ts'
import type { Network } from './network.ts'
import { child, type Node, node, SERVER, seconds } from './nodes.ts'
import type { Restriction } from './scenario/scenario.ts'

/** WhatsApp's error for a message to somebody new. */
export const RESTRICTED = '463'
/** Baileys `QueryIds.REACHOUT_TIMELOCK`. */
const ASKS_FOR_RESTRICTION = '23983697327930364'

export function restrictionOf({ scenario }: Network, { phone }: Account): Restriction | null {
  const restriction = scenario.restrictions.get(phone)
  return restriction && Date.now() < restriction.endsAt ? restriction : null
}

/** Whether WhatsApp refuses a message of the account to this number: they have not talked before. */
export function isKeptFrom(network: Network, account: Account, number: string): boolean {
  if (restrictionOf(network, account) === null) return false
  return !(network.findAccount(number) ?? account).hasTalked(number, account)
}

/** The one question of this kind that is answered. */
export function answerMex(network: Network, account: Account, iq: Node): Node[] {
  const query = child(iq, 'query')
  if (query?.attrs['query_id'] !== ASKS_FOR_RESTRICTION) return []
  const data = { xwa2_fetch_account_reachout_timelock: told(restrictionOf(network, account)) }
  return [node('result', {}, Buffer.from(JSON.stringify({ data })))]
}

export function restrictionStanza(network: Network, account: Account): Node {
  const data = { xwa2_notify_account_reachout_timelock: told(restrictionOf(network, account)) }
  const update = node(
    'update',
    { op_name: 'NotificationUserReachoutTimelockUpdate' },
    Buffer.from(JSON.stringify({ data })),
  )
  return node('notification', { from: SERVER, type: 'mex', id: createMessageId(), t: seconds(Date.now()) }, [update])
}

function told(restriction: Restriction | null) {
  if (restriction === null) return { is_active: false }
  const { endsAt, saysUntil } = restriction
  return { is_active: true, ...(saysUntil && { time_enforcement_ends: seconds(endsAt) }) }
}
