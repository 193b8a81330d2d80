import { type BinaryNode, getBinaryNodeChild, getBinaryNodeChildren, jidNormalizedUser, S_WHATSAPP_NET } from 'baileys'
import { otherSpelling } from '../../domain/recipients/recipient.ts'
import { numberOf } from './addresses.ts'

/** WhatsApp's answer about a number. `silent`: no usable answer, try again later. */
export type LookUp = { kind: 'found'; address: string } | { kind: 'absent' } | { kind: 'silent' }

/** Queries WhatsApp. Undefined if it did not answer. @throws Boom if it answered with an error */
type Query = (node: BinaryNode) => Promise<BinaryNode | undefined>

/** WhatsApp's code for a client that sends too many queries. */
const RATE_LIMITED = 429

/**
 * Finds out whether a number is on WhatsApp. Baileys' `onWhatsApp` is unsuitable: it reports a number as absent whenever
 * the answer lacks `in`, even if the answer does not mention the number. In that case this function also queries the
 * devices of the number's address. A number with a device is on WhatsApp. A number missing from both answers is not.
 * Only the first query shows which spelling of a Brazilian number exists (with or without the ninth digit). If it is
 * unanswered, the outcome for such a number is `silent`.
 * @throws Boom when WhatsApp limits the rate of queries (429)
 */
export async function lookUp(number: string, query: Query): Promise<LookUp> {
  const asked = { tag: 'contact', attrs: {}, content: `+${number}` }
  const listed = await askFor(query, { tag: 'contact', attrs: {} }, { tag: 'user', attrs: {}, content: [asked] })
  if (listed.kind === 'unanswered' && otherSpelling(number)) return { kind: 'silent' }
  const contact = getBinaryNodeChild(listed.user, 'contact')
  const jid = listed.user?.attrs['jid']
  const type = contact?.attrs['type']
  if (type === 'in' && jid) return { kind: 'found', address: jidNormalizedUser(jid) }
  if (type !== undefined && type !== 'in') return { kind: 'absent' }

  const address = `${number}${S_WHATSAPP_NET}`
  const devices = await askForDevices(address, query)
  if (devices === 'some') return { kind: 'found', address }
  const leftOut = listed.kind === 'list' && !getBinaryNodeChild(contact, 'error')
  return leftOut && devices === 'none' ? { kind: 'absent' } : { kind: 'silent' }
}

/**
 * Finds out whether a person given by LID address is on WhatsApp. If the mapping contains the person's number, the
 * result is the address of the number, so both addresses of a person lead to one chat.
 * @throws Boom when WhatsApp limits the rate of queries (429)
 */
export async function lookUpLid(
  lid: string,
  query: Query,
  mapping: { getPNForLID(lid: string): Promise<string | null> },
): Promise<LookUp> {
  const number = numberOf(await mapping.getPNForLID(lid).catch(() => null))
  if (number !== undefined) return { kind: 'found', address: `${number}${S_WHATSAPP_NET}` }
  const devices = await askForDevices(lid, query)
  if (devices === 'some') return { kind: 'found', address: lid }
  return { kind: devices === 'none' ? 'absent' : 'silent' }
}

async function askForDevices(jid: string, query: Query): Promise<'some' | 'none' | 'silent'> {
  const protocol = { tag: 'devices', attrs: { version: '2' } }
  const { kind, user } = await askFor(query, protocol, { tag: 'user', attrs: { jid } })
  const list = getBinaryNodeChild(getBinaryNodeChild(user, 'devices'), 'device-list')
  if (getBinaryNodeChildren(list, 'device').length > 0) return 'some'
  return kind === 'list' && (user === undefined || list !== undefined) ? 'none' : 'silent'
}

/** WhatsApp's entry for one user. `list`: the answer contains a list, even if the user is missing from it. */
async function askFor(
  query: Query,
  protocol: BinaryNode,
  user: BinaryNode,
): Promise<{ kind: 'list' | 'unusable' | 'unanswered'; user: BinaryNode | undefined }> {
  const content = [
    { tag: 'query', attrs: {}, content: [protocol] },
    { tag: 'list', attrs: {}, content: [user] },
  ]
  const attrs = { context: 'interactive', mode: 'query', sid: String(Date.now()), last: 'true', index: '0' }
  const iq = { to: S_WHATSAPP_NET, type: 'get', xmlns: 'usync' }
  const answer = await query({ tag: 'iq', attrs: iq, content: [{ tag: 'usync', attrs, content }] }).catch(error => {
    if ((error as { data?: unknown } | null)?.data === RATE_LIMITED) throw error
    return 'unusable' as const
  })
  if (answer === 'unusable') return { kind: 'unusable', user: undefined }
  if (answer === undefined) return { kind: 'unanswered', user: undefined }
  const list = getBinaryNodeChild(getBinaryNodeChild(answer, 'usync'), 'list')
  return { kind: list ? 'list' : 'unusable', user: getBinaryNodeChildren(list, 'user')[0] }
}

/** True if WhatsApp has answered with an error. Baileys puts WhatsApp's code in `data`. */
export function isRefusal(error: unknown): boolean {
  return typeof (error as { data?: unknown } | null)?.data === 'number'
}
