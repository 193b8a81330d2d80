import { BoundedMap } from '../../kit/bounded-map.ts'
import { isSelf, lidOf, type Self } from '../baileys/addresses.ts'
import type { GroupMetadata } from '../baileys/link.ts'

/** Members change by notifications, which empty the entry; an hour bounds what a missed one costs. */
const FRESH_MS = 3_600_000
const MAX_GROUPS = 500

/** WhatsApp's answers for a group that does not exist or that we may not see: 401, 403, 404, 410. */
const NOT_OURS: ReadonlySet<number> = new Set([401, 403, 404, 410])

export type FoundGroup =
  | { kind: 'member' }
  | { kind: 'not_member' }
  /** No answer: ask again later. */
  | { kind: 'silent' }

export interface GroupSource {
  readonly self: Self
  queryGroup(group: string): Promise<GroupMetadata>
}

/** The members of the groups written to, so that a message to a group costs no query. It outlives the socket. */
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

  async find(group: string, source: GroupSource): Promise<FoundGroup> {
    try {
      const metadata = this.get(group) ?? (await this.#query(group, source))
      return { kind: isMember(source.self, metadata) ? 'member' : 'not_member' }
    } catch (error) {
      return { kind: NOT_OURS.has(codeOf(error)) ? 'not_member' : 'silent' }
    }
  }

  async #query(group: string, source: GroupSource): Promise<GroupMetadata> {
    const metadata = await source.queryGroup(group)
    this.#groups.set(group, { at: performance.now(), metadata })
    return metadata
  }
}

/** A group that lists nobody, or lists us in a way that we cannot tell, is taken for ours. */
function isMember(self: Self, { participants }: GroupMetadata): boolean {
  // Named by LID alone we do not find ourselves where nobody told us ours.
  const unnamed = self.lid === undefined && participants.some(({ id, phoneNumber }) => lidOf(id) && !phoneNumber)
  const named = participants.some(({ id, lid, phoneNumber }) => [id, lid, phoneNumber].some(jid => isSelf(jid, self)))
  return participants.length === 0 || named || unnamed
}

/** Baileys puts WhatsApp's code into `data`, and a stand-in of its own into the status. */
function codeOf(error: unknown): number {
  const { data, output } = (error ?? {}) as { data?: unknown; output?: { statusCode?: unknown } }
  return Number(typeof data === 'number' || typeof data === 'string' ? data : output?.statusCode)
}
