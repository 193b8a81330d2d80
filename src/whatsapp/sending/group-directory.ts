import { BoundedMap } from '../../kit/bounded-map.ts'
import { isSelf, lidOf, type Self } from '../baileys/addresses.ts'
import type { GroupMetadata } from '../baileys/link.ts'

/** A notification of a change removes the entry. This limit, in milliseconds, covers a missed notification. */
const FRESH_MS = 3_600_000
const MAX_GROUPS = 500

/** WhatsApp's codes for a group that does not exist or that the account may not see. */
const NOT_A_MEMBER_CODES: ReadonlySet<number> = new Set([401, 403, 404, 410])

/** `silent`: WhatsApp gave no answer. Try again later. */
type Membership = 'member' | 'not_member' | 'silent'

export interface GroupSource {
  readonly self: Self
  queryGroup(group: string): Promise<GroupMetadata>
}

/** Caches the members of groups, so a message to a group needs no query. It is kept across sockets. */
export class GroupDirectory {
  readonly #groups = new BoundedMap<string, { at: number; metadata: GroupMetadata }>(MAX_GROUPS)

  get(group: string): GroupMetadata | undefined {
    const entry = this.#groups.get(group)
    return entry && performance.now() - entry.at < FRESH_MS ? entry.metadata : undefined
  }

  forget(group: string): void {
    this.#groups.delete(group)
  }

  flushAll(): void {
    this.#groups.clear()
  }

  async find(group: string, source: GroupSource): Promise<Membership> {
    try {
      const metadata = this.get(group) ?? (await this.#query(group, source))
      return isMember(source.self, metadata) ? 'member' : 'not_member'
    } catch (error) {
      return NOT_A_MEMBER_CODES.has(codeOf(error)) ? 'not_member' : 'silent'
    }
  }

  async #query(group: string, source: GroupSource): Promise<GroupMetadata> {
    const metadata = await source.queryGroup(group)
    this.#groups.set(group, { at: performance.now(), metadata })
    return metadata
  }
}

/** True as well if the group lists no members, or if we cannot recognize ourselves among them. */
function isMember(self: Self, { participants }: GroupMetadata): boolean {
  // Members may be listed by LID only, and WhatsApp may not have announced our own LID.
  const unnamed = self.lid === undefined && participants.some(({ id, phoneNumber }) => lidOf(id) && !phoneNumber)
  const named = participants.some(({ id, lid, phoneNumber }) => [id, lid, phoneNumber].some(jid => isSelf(jid, self)))
  return participants.length === 0 || named || unnamed
}

/** Baileys puts WhatsApp's code into `data` and its own replacement into the status code. */
function codeOf(error: unknown): number {
  const { data, output } = (error ?? {}) as { data?: unknown; output?: { statusCode?: unknown } }
  return Number(typeof data === 'number' || typeof data === 'string' ? data : output?.statusCode)
}
