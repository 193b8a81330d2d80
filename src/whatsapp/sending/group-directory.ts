import { type IncomingChange, phoneOf } from '../../domain/incoming-message.ts'
import type { GroupDetails } from '../../domain/recipients/group.ts'
import { isSameMember } from '../../domain/recipients/group.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { Directory, KnownGroup } from '../../store/directory/directory.ts'
import type { Lease } from '../../store/leases/leases.ts'
import { untilStored } from '../../store/until-stored.ts'
import { ownAddresses, type Self } from '../baileys/addresses.ts'
import { LinkClosed } from '../baileys/link.ts'

/**
 * `find` asks WhatsApp about a known group at most once in this time, in milliseconds. Notifications keep the rows up
 * to date. The query covers a missed notification.
 */
export const FRESH_MS = 3_600_000
/** `refresh` asks WhatsApp about a group at most once in this time, in milliseconds. */
const REFRESH_MS = 60_000
const MAX_GROUPS = 500

/** WhatsApp's codes for a group that does not exist or that the account may not see. */
const NOT_A_MEMBER_CODES: ReadonlySet<number> = new Set([401, 403, 404, 410])

/** `silent`: WhatsApp gave no answer. Try again later. */
type Membership = 'member' | 'not_member' | 'silent'

export interface GroupSource {
  readonly self: Self
  queryGroup(group: string): Promise<GroupDetails>
}

interface GroupDirectoryOptions {
  lease: Lease
  store: { directory: Pick<Directory, 'readGroup' | 'recordGroups' | 'recordNoMember'> }
  now: () => number
  /** Ends the retries while the store is unavailable. */
  signal: AbortSignal
}

/** The groups of the account, read from the store and kept across sockets, so most messages to groups need no query. */
export class GroupDirectory {
  readonly #options: GroupDirectoryOptions
  readonly #groups = new BoundedMap<string, KnownGroup>(MAX_GROUPS)
  /** Groups that may have changed without a notification. */
  readonly #doubtful = new BoundedMap<string, true>(MAX_GROUPS)
  /** Groups that WhatsApp did not describe when a change by an admin had to be checked. */
  readonly #undecided = new BoundedMap<string, true>(MAX_GROUPS)
  /** When `refresh` last asked about a group (`performance.now()`). */
  readonly #refreshedAt = new BoundedMap<string, number>(MAX_GROUPS)
  readonly #queries = new Map<string, Promise<Membership>>()

  constructor(options: GroupDirectoryOptions) {
    this.#options = options
  }

  /** The group as it is known without a query; null if the account is not known to be a member. */
  async describe(group: string): Promise<GroupDetails | null> {
    return (await this.#recall(group))?.details ?? null
  }

  /** Call when the row of the group has changed. */
  forget(group: string): void {
    this.#groups.delete(group)
  }

  /** WhatsApp's answer to a message indicates that the group has changed. */
  doubt(group: string): void {
    this.#doubtful.set(group, true)
  }

  flushAll(): void {
    this.#groups.clear()
    this.#doubtful.clear()
    this.#undecided.clear()
    this.#refreshedAt.clear()
  }

  async find(group: string, source: GroupSource): Promise<Membership> {
    const known = await this.#recall(group)
    const now = this.#options.now()
    const isFresh = known !== null && isRecent(known.asOf, now) && this.#doubtful.get(group) === undefined
    const mayQuery = known === null || !isRecent(known.queriedAt, now)
    if (known !== null && (isFresh || !mayQuery)) return membershipIn(known, source.self)
    const answer = await this.query(group, source)
    if (answer !== 'silent' || known?.details == null) return answer
    // WhatsApp is not asked again for an hour. Otherwise every message would wait for an answer.
    if (this.#groups.get(group) === known) this.#groups.set(group, { ...known, queriedAt: now })
    // A notification may have changed the row during the query.
    const current = await this.#recall(group)
    return current === null ? 'silent' : membershipIn(current, source.self)
  }

  /**
   * Asks WhatsApp about a group that somebody seems to have entered without a notification. Others can cause this at any
   * time, so it happens at most once a minute. Also resolves if WhatsApp gives no answer.
   */
  async refresh(group: string, source: GroupSource & { readonly closed: AbortSignal }): Promise<void> {
    this.doubt(group)
    const now = performance.now()
    const mayQuery = now - (this.#refreshedAt.get(group) ?? Number.NEGATIVE_INFINITY) >= REFRESH_MS
    if (!mayQuery && !this.#queries.has(group)) return
    if (mayQuery) this.#refreshedAt.set(group, now)
    const answer = await this.query(group, source)
    // WhatsApp delivers again, over the next link, whatever was not acknowledged.
    if (answer === 'silent' && source.closed.aborted) this.#refreshedAt.delete(group)
  }

  /**
   * Whether somebody is an admin of a group. WhatsApp is asked only if the stored row says no, because all later
   * incoming messages wait for the answer.
   * @throws LinkClosed if the group is unknown and WhatsApp gives no answer: the change is delivered again over the
   *   next link. The second time, the answer is false.
   */
  async isAdmin(
    change: Pick<IncomingChange, 'group' | 'from' | 'addressing' | 'lid'>,
    source: GroupSource & { readonly closed: AbortSignal },
  ): Promise<boolean> {
    const { group, lid } = change
    if (group === undefined) return false
    const isListed = async () => {
      const members = (await this.describe(group))?.members ?? []
      return members.some(member => member.role !== 'member' && isSameMember(member, { phone: phoneOf(change), lid }))
    }
    if (await isListed()) return true
    if ((await this.find(group, source)) === 'silent') {
      const isRepeated = this.#undecided.get(group) !== undefined
      this.#undecided.set(group, true)
      if (source.closed.aborted || !isRepeated) throw new LinkClosed()
    }
    return isListed()
  }

  /** Asks WhatsApp and records its answer. Concurrent callers share one query. */
  query(group: string, source: GroupSource): Promise<Membership> {
    const running = this.#queries.get(group)
    if (running) return running
    const query = this.#query(group, source).finally(() => this.#queries.delete(group))
    this.#queries.set(group, query)
    return query
  }

  async #query(group: string, source: GroupSource): Promise<Membership> {
    const { lease, store, now, signal } = this.#options
    const { directory } = store
    const askedAt = now()
    let details: GroupDetails | null
    try {
      details = await source.queryGroup(group)
    } catch (error) {
      if (!NOT_A_MEMBER_CODES.has(codeOf(error))) return 'silent'
      details = null
    }
    if (details !== null && !isMember(source.self, details)) details = null
    const of = { self: ownAddresses(source.self), askedAt, reason: 'queried' as const }
    await untilStored(
      () =>
        details === null
          ? directory.recordNoMember(lease, group, { askedAt, now: now() })
          : directory.recordGroups(lease, [{ ...details, id: group }], { ...of, now: now() }),
      signal,
    )
    this.#undecided.delete(group)
    this.forget(group)
    // The store keeps a row that may be newer than a denial.
    if (details === null && (await this.describe(group)) !== null) this.doubt(group)
    else this.#doubtful.delete(group)
    return details === null ? 'not_member' : 'member'
  }

  async #recall(group: string): Promise<KnownGroup | null> {
    const cached = this.#groups.get(group)
    if (cached) return cached
    const { lease, store, signal } = this.#options
    const found = await untilStored(() => store.directory.readGroup(lease.instanceId, group), signal)
    if (found) this.#groups.set(group, found)
    return found
  }
}

/** False for a time in the future: the clock was ahead then. */
function isRecent(at: number, now: number): boolean {
  return at <= now && now - at < FRESH_MS
}

function membershipIn({ details }: KnownGroup, self: Self): Membership {
  return details !== null && isMember(self, details) ? 'member' : 'not_member'
}

/** Also true if the group lists no members, or if we cannot recognise ourselves among them. */
function isMember(self: Self, { members }: GroupDetails): boolean {
  const own = ownAddresses(self)
  // Members may be listed by LID only, and WhatsApp may not have announced our own LID.
  const unnamed = own.lid === null && members.some(({ phone }) => phone === null)
  return members.length === 0 || unnamed || members.some(member => isSameMember(member, own))
}

/** Baileys puts WhatsApp's code into `data` and its own replacement into the status code. */
function codeOf(error: unknown): number {
  const { data, output } = (error ?? {}) as { data?: unknown; output?: { statusCode?: unknown } }
  return Number(typeof data === 'number' || typeof data === 'string' ? data : output?.statusCode)
}
