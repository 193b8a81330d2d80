/** The queries of a linked client, and their answers. */
import { type Answer, type Asker, BAD_REQUEST } from '../contacts/asker.ts'
import { changeBlocked, changePrivacy, changeTimer, listBlocked, listPrivacy } from '../profiles/account-queries.ts'
import { answerBusinessProfile, answerPicture, setAbout, setPicture } from '../profiles/profile-queries.ts'
import { catchUp } from '../server/delivery.ts'
import { initialSync } from '../server/initial-sync.ts'
import { answerMex } from '../server/restriction.ts'
import { children, type Node, node, SERVER } from '../wire/nodes.ts'
import { syncAppState } from './app-state-queries.ts'
import { groupQueries } from './group-queries.ts'
import { answerKeys, rotateKey, uploadKeys } from './key-queries.ts'
import { answerUsync } from './user-queries.ts'

type Handler = (asker: Asker, iq: Node) => Promise<Answer> | Answer

/**
 * The handlers of queries, by the query's type, namespace and first child. An entry without a child matches every query
 * of that type and namespace that has no entry of its own.
 */
const handlers: Readonly<Record<string, Handler>> = {
  'get encrypt count': ({ network, account }) => [
    node('count', { value: Math.max(account.preKeys.size, network.claimedPreKeys).toString() }),
  ],
  'get encrypt digest': () => [node('digest')],
  'get encrypt key': answerKeys,
  'set encrypt registration': uploadKeys,
  'set encrypt rotate': rotateKey,
  'set passive active': () => [],
  'set w:m media_conn': ({ network, account }) => [network.media.connection(account.phone)],
  'get abt props': () => [node('props', { hash: 'none' })],
  'get w:p': () => [],
  // None of these three has an effect that a client could notice.
  'set w:stats add': () => [],
  'set urn:xmpp:whatsapp:dirty clean': () => [],
  'set privacy tokens': () => [],
  'get blocklist': listBlocked,
  'set blocklist item': changeBlocked,
  'get privacy privacy': listPrivacy,
  'set privacy privacy': changePrivacy,
  'set disappearing_mode disappearing_mode': changeTimer,
  'get w:profile:picture picture': answerPicture,
  'set w:profile:picture': setPicture,
  'set status status': setAbout,
  'get w:biz business_profile': answerBusinessProfile,
  'get usync usync': answerUsync,
  'get w:mex query': answerMex,
  ...groupQueries,
  'set w:sync:app:state sync': syncAppState,
  'get w:sync:app:state sync': syncAppState,
}

/** Resolves once the answer has been sent, or has been dropped. */
export async function handleIq(asker: Asker, iq: Node): Promise<void> {
  // Baileys sends its statistics without a type.
  const { id, type = 'set', xmlns, to } = iq.attrs
  if (type !== 'get' && type !== 'set') return
  const [question] = children(iq)
  const kind = `${type} ${xmlns} ${question?.tag}`
  const handler = handlers[kind] ?? handlers[`${type} ${xmlns}`]
  if (!handler) asker.network.refusedQueries.report(kind, iq)
  const answer = handler ? await handler(asker, iq) : BAD_REQUEST
  const from = to === undefined || to.startsWith('@') ? SERVER : to
  if (Array.isArray(answer))
    asker.client.send(node('iq', { type: 'result', from, id }, answer.length > 0 ? answer : undefined))
  else
    asker.client.send(
      node('iq', { type: 'error', from, id }, [node('error', { code: answer.error, text: answer.text })]),
    )
  if (type === 'set' && xmlns === 'passive' && question?.tag === 'active') await sendKept(asker)
}

async function sendKept({ network, account, markCaughtUp }: Asker): Promise<void> {
  await account.applyDurably(() => [() => catchUp(network, account, markCaughtUp)])
  await account.applyDurably(() => initialSync(network, account))
}
