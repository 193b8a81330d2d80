/** The queries of a linked client, and their answers. */
import { type Answer, type Asker, BAD_REQUEST, NOT_FOUND } from '../contacts/asker.ts'
import { changeMembers, createGroup, leaveGroup, renameGroup } from '../contacts/group-changes.ts'
import { catchUp } from '../server/delivery.ts'
import { initialSync } from '../server/initial-sync.ts'
import { answerMex } from '../server/restriction.ts'
import { children, type Node, node, SERVER } from '../wire/nodes.ts'
import { syncAppState } from './app-state-queries.ts'
import { answerGroup, answerGroups } from './group-queries.ts'
import { answerKeys, rotateKey, uploadKeys } from './key-queries.ts'
import { answerUsync } from './user-queries.ts'

type Handler = (asker: Asker, iq: Node) => Promise<Answer> | Answer

/** By type, namespace and first child. A query without a child, or with any child, is listed without one. */
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
  // Neither has an effect that a client could notice.
  'set w:stats add': () => [],
  'set urn:xmpp:whatsapp:dirty clean': () => [],
  'set privacy tokens': () => [],
  'get blocklist': () => [node('list', {}, [])],
  'get privacy privacy': () => [node('privacy', {}, privacySettings())],
  'get w:profile:picture picture': () => NOT_FOUND,
  'get usync usync': answerUsync,
  'get w:mex query': answerMex,
  'get w:g2 query': answerGroup,
  'get w:g2 participating': answerGroups,
  'set w:g2 create': createGroup,
  'set w:g2 add': changeMembers('add'),
  'set w:g2 remove': changeMembers('remove'),
  'set w:g2 promote': changeMembers('promote'),
  'set w:g2 demote': changeMembers('demote'),
  'set w:g2 leave': leaveGroup,
  'set w:g2 subject': renameGroup,
  'set w:sync:app:state sync': syncAppState,
  'get w:sync:app:state sync': syncAppState,
}

/** Resolves once the answer has been sent, or has been dropped. */
export async function handleIq(asker: Asker, iq: Node): Promise<void> {
  const { id, type, xmlns, to } = iq.attrs
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

function privacySettings(): Node[] {
  const names = ['readreceipts', 'last', 'online', 'profile', 'status', 'groupadd', 'calladd']
  return names.map(name => node('category', { name, value: 'all' }))
}
