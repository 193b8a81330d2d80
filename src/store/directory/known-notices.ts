import { createHash } from 'node:crypto'
import type { GroupNotice } from '../../domain/recipients/group.ts'

/** Notices of one group that are remembered one by one. */
const MAX_SEEN = 200

/** WhatsApp's notices about one group that are not applied again. */
export interface KnownNotices {
  /** Every notice from before this time is known. WhatsApp's time, in seconds. */
  before: number
  /** The times and digests of the latest notices, in the order of their arrival. */
  seen: readonly (readonly [at: number, digest: string])[]
}

export const NO_NOTICES: KnownNotices = { before: 0, seen: [] }

export function isKnown({ before, seen }: KnownNotices, notice: GroupNotice): boolean {
  const digest = digestOf(notice)
  return notice.at < before || seen.some(([at, other]) => at === notice.at && other === digest)
}

export function withNotice({ before, seen }: KnownNotices, notice: GroupNotice): KnownNotices {
  const latest = [...seen, [notice.at, digestOf(notice)] as const].slice(-MAX_SEEN)
  // If an old notice were applied again and the change that reverses it were not, the row would be wrong.
  return { before: latest.length > seen.length ? before : Math.max(before, latest[0]![0]), seen: latest }
}

/** WhatsApp's ID may have any length. */
function digestOf({ id }: GroupNotice): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 16)
}
