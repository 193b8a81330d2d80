/**
 * A temporary restriction: the account may not start new chats. WhatsApp refuses messages to strangers with 463, reports the
 * restriction when asked, and notifies the client. The fields are those that Baileys reads (`messages-recv.js`,
 * `socket.js`). When WhatsApp imposes a restriction is not known.
 */
import type { Account } from '../account.ts'
import type { Answer, Asker } from '../contacts/asker.ts'
import { createMessageId } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import type { Restriction } from '../scenario/scenario.ts'
import { child, type Node, node, SERVER, seconds } from '../wire/nodes.ts'

/** WhatsApp's error for a message to a stranger. */
export const RESTRICTED = '463'
/** Baileys `QueryIds.REACHOUT_TIMELOCK`. */
const ASKS_FOR_RESTRICTION = '23983697327930364'

export function restrictionOf({ scenario }: Network, { phone }: Account): Restriction | null {
  const restriction = scenario.restrictions.get(phone)
  return restriction && Date.now() < restriction.endsAt ? restriction : null
}

/** True if WhatsApp refuses a message of the account to this number, because they have not talked before. */
export function isRestrictedFor(network: Network, account: Account, number: string): boolean {
  if (restrictionOf(network, account) === null) return false
  return !(network.findAccount(number) ?? account).hasTalked(number, account)
}

/** Answers the only GraphQL query that is supported. An unknown one gets a GraphQL error. */
export function answerMex({ network, account }: Asker, iq: Node): Answer {
  const id = child(iq, 'query')?.attrs['query_id']
  if (id === ASKS_FOR_RESTRICTION) {
    const data = { xwa2_fetch_account_reachout_timelock: describe(restrictionOf(network, account)) }
    return [node('result', {}, Buffer.from(JSON.stringify({ data })))]
  }
  network.refusedQueries.report(`mex ${id}`, iq)
  const errors = [{ message: 'Bad Request', extensions: { error_code: 400, is_silent: false } }]
  return [node('result', {}, Buffer.from(JSON.stringify({ data: null, errors })))]
}

export function restrictionStanza(network: Network, account: Account): Node {
  const data = { xwa2_notify_account_reachout_timelock: describe(restrictionOf(network, account)) }
  const update = node(
    'update',
    { op_name: 'NotificationUserReachoutTimelockUpdate' },
    Buffer.from(JSON.stringify({ data })),
  )
  return node('notification', { from: SERVER, type: 'mex', id: createMessageId(), t: seconds(Date.now()) }, [update])
}

function describe(restriction: Restriction | null) {
  if (restriction === null) return { is_active: false }
  const { endsAt, saysUntil } = restriction
  return { is_active: true, ...(saysUntil && { time_enforcement_ends: seconds(endsAt) }) }
}
