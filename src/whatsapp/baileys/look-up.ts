import { type BinaryNode, getBinaryNodeChild, getBinaryNodeChildren, jidNormalizedUser, S_WHATSAPP_NET } from 'baileys'

/** What WhatsApp says of a number; `silent`: nothing, ask again later. */
export type LookUp = { kind: 'found'; address: string } | { kind: 'absent' } | { kind: 'silent' }

/** Asks WhatsApp; undefined when it did not answer. @throws when it answered with an error */
type Query = (node: BinaryNode) => Promise<BinaryNode | undefined>

/** WhatsApp's code for a client that asks too much. */
const ASKS_TOO_MUCH = 429

/**
 * Looks a number up. Not with Baileys' `onWhatsApp`: it takes every answer without the word `in` for a no, also one that
 * does not speak of the number at all. After such an answer the devices are asked for, by the address that the number
 * would have: who has a device is on WhatsApp, who is left out of both answers is not.
 * @throws when WhatsApp wants to be left alone
 */
export async function lookUp(number: string, query: Query): Promise<LookUp> {
  const asked = { tag: 'contact', attrs: {}, content: `+${number}` }
  const listed = await askFor(query, { tag: 'contact', attrs: {} }, { tag: 'user', attrs: {}, content: [asked] })
  const contact = getBinaryNodeChild(listed.user, 'contact')
  const jid = listed.user?.attrs['jid']
  const said = contact?.attrs['type']
  if (said === 'in' && jid) return { kind: 'found', address: jidNormalizedUser(jid) }
  if (said !== undefined && said !== 'in') return { kind: 'absent' }

  const address = `${number}${S_WHATSAPP_NET}`
  const owned = await askFor(
    query,
    { tag: 'devices', attrs: { version: '2' } },
    { tag: 'user', attrs: { jid: address } },
  )
  const devices = getBinaryNodeChild(owned.user, 'devices')
  const list = getBinaryNodeChild(devices, 'device-list')
  if (getBinaryNodeChildren(list, 'device').length > 0) return { kind: 'found', address }
  const leftOut = listed.answered && !getBinaryNodeChild(contact, 'error')
  const ownsNone = owned.answered && (owned.user === undefined || list !== undefined)
  return leftOut && ownsNone ? { kind: 'absent' } : { kind: 'silent' }
}

/** What WhatsApp lists of one user; `answered`: there is a list, in which the user may be missing. */
async function askFor(
  query: Query,
  protocol: BinaryNode,
  user: BinaryNode,
): Promise<{ answered: boolean; user: BinaryNode | undefined }> {
  const content = [
    { tag: 'query', attrs: {}, content: [protocol] },
    { tag: 'list', attrs: {}, content: [user] },
  ]
  const attrs = { context: 'interactive', mode: 'query', sid: String(Date.now()), last: 'true', index: '0' }
  const iq = { to: S_WHATSAPP_NET, type: 'get', xmlns: 'usync' }
  const answer = await query({ tag: 'iq', attrs: iq, content: [{ tag: 'usync', attrs, content }] }).catch(error => {
    if ((error as { data?: unknown } | null)?.data === ASKS_TOO_MUCH) throw error
    return undefined
  })
  const list = getBinaryNodeChild(getBinaryNodeChild(answer, 'usync'), 'list')
  return { answered: list !== undefined, user: getBinaryNodeChildren(list, 'user')[0] }
}
