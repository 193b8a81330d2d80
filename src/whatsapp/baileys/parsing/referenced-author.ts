import type { proto } from 'baileys'
import type { ReferencedAuthor } from '../../../domain/incoming-message.ts'
import { isSelf, isWellFormed, type Self } from '../addresses.ts'
import type { Correspondents } from '../correspondents.ts'
import { openContent } from './content.ts'
import { contextOf, nameOf } from './incoming-details.ts'

interface Referring {
  isOwn: boolean
  group: boolean
  self: Self
  /** The sender's names; those of the other side if the owner wrote the message in a chat. */
  names: readonly string[]
}

/** Who wrote the message that the content quotes or reacts to. Undefined if its sender does not say so. */
export async function findReferencedAuthor(
  wrapped: proto.IMessage | null | undefined,
  { isOwn, group, self, names }: Referring,
  correspondents: Pick<Correspondents, 'addressesOf'>,
): Promise<ReferencedAuthor | undefined> {
  const content = openContent(wrapped)
  if (!content) return undefined
  const key = content.reactionMessage?.key
  const participant = key ? key.participant : contextOf(content)?.participant
  // `fromMe` says whether the sender of the reaction wrote the message.
  if (key?.fromMe) return isOwn ? 'own' : names
  if (isSelf(participant, self)) return 'own'
  if (!group && key) return isOwn ? names : 'own'
  if (!participant) return undefined
  if (!group) return names
  if (!isWellFormed(participant)) return undefined
  const found = (await correspondents.addressesOf(participant)).flatMap(jid => nameOf(jid) ?? [])
  return found.length > 0 ? found : undefined
}
