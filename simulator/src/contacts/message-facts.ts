import type { Inboxes } from '../server/inbox.ts'
import type { ReceivedMessage } from '../types.ts'
import { type Node, node } from '../wire/nodes.ts'
import type { Content } from './content.ts'
import { readVote } from './conversation.ts'

/**
 * What a phone shows of a message, apart from its file. The poll of a vote is looked for on all phones of the scope.
 */
export function factsOf(inboxes: Inboxes, { text, quoted, mentions, details, actions, vote }: Content, from: string) {
  const facts: Pick<ReceivedMessage, 'text' | 'quoted' | 'mentions' | 'details' | 'vote'> = {
    text,
    ...(quoted && { quoted }),
    ...(mentions.length > 0 && { mentions }),
    ...(details && { details }),
    ...actions,
  }
  const id = facts.vote?.poll
  const [poll, content] = id === undefined ? [] : [inboxes.find(id), inboxes.contentOf(id)]
  if (id === undefined || !vote || !poll || !content) return facts
  return { ...facts, vote: { poll: id, options: readVote(vote, { id, author: poll.from }, from, content) } }
}

/** The attributes and parts of a stanza that tell the server what kind of message it carries. */
export function kindOf({ media, actions }: Content): { attrs: Record<string, string | undefined>; parts: Node[] } {
  const deletion = actions.deletesOf === undefined ? '7' : '8'
  const edit = actions.edit === undefined ? (actions.deletes === undefined ? undefined : deletion) : '1'
  const plain = media ? 'media' : 'text'
  const type = actions.reaction ? 'reaction' : actions.poll || actions.vote ? 'poll' : plain
  const polltype = actions.poll ? 'creation' : 'vote'
  return { attrs: { type, edit }, parts: type === 'poll' ? [node('meta', { polltype })] : [] }
}
