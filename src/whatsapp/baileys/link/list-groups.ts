import { type BinaryNode, getBinaryNodeChild, getBinaryNodeChildren, type WASocket } from 'baileys'
import { extractGroupMetadata } from 'baileys/lib/Socket/groups.js'
import type { GroupDetails } from '../../../domain/recipients/group.ts'
import { toGroupDetails } from '../parsing/group.ts'

/**
 * Queries all groups of the account. Baileys' `groupFetchAllParticipating` is unsuitable: it reports no groups if WhatsApp does
 * not answer.
 * @throws if WhatsApp does not answer, or answers with an error
 */
export async function listGroups({ query }: Pick<WASocket, 'query'>): Promise<GroupDetails[]> {
  const parts = ['participants', 'description'].map(tag => ({ tag, attrs: {} }))
  const answer: BinaryNode | undefined = await query({
    tag: 'iq',
    attrs: { to: '@g.us', xmlns: 'w:g2', type: 'get' },
    content: [{ tag: 'participating', attrs: {}, content: parts }],
  })
  if (answer === undefined) throw new Error('WhatsApp did not answer the query for all groups.')
  return getBinaryNodeChildren(getBinaryNodeChild(answer, 'groups'), 'group').map(group =>
    toGroupDetails(extractGroupMetadata({ tag: 'result', attrs: {}, content: [group] })),
  )
}
