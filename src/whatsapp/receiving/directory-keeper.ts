import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { HeardContact } from '../../domain/recipients/contact.ts'
import type { GroupChange, GroupDetails, GroupNotice } from '../../domain/recipients/group.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'
import type { Directory, DueGroup } from '../../store/directory/directory.ts'
import type { Lease } from '../../store/leases/leases.ts'
import { untilStored } from '../../store/until-stored.ts'
import { ownAddresses } from '../baileys/addresses.ts'
import type { Link } from '../baileys/link.ts'
import { FRESH_MS, GroupDirectory } from '../sending/group-directory.ts'

/** The pause before WhatsApp is asked for the groups again if it did not answer. */
const ASK_AGAIN_MS = 60_000
/** The longest timer of Node. A notification or the end of the link ends this wait. */
const FOREVER_MS = 2 ** 31 - 1
const MAX_SILENT = 500

type DirectoryLink = Pick<Link, 'self' | 'closed' | 'queryGroup' | 'queryGroups' | 'readAddressBook'>

/** The address book of the phone, as far as it was read over one link. */
interface AddressBook {
  /** Changes whose names are not recorded yet. */
  changes: number
  /** All names are recorded, except for those of the changes. */
  isRecorded: boolean
}

/** A notification about a group. */
interface ReportedChanges {
  changes: readonly GroupChange[]
  notice: GroupNotice | null
}

interface DirectoryKeeperOptions {
  lease: Lease
  store: { directory: Directory }
  logger: Logger
  now: () => number
  signal: AbortSignal
}

/**
 * Keeps the rows of the directory as WhatsApp reports them. One query reads all groups after the account is linked.
 * Every group change that WhatsApp reports is recorded before it is acknowledged. An `unclear` change is only noted in
 * memory.
 */
export class DirectoryKeeper {
  readonly #options: DirectoryKeeperOptions
  readonly groups: GroupDirectory
  /** Changes are recorded in the order of WhatsApp's reports. */
  #changes: Promise<unknown> = Promise.resolve()
  #isFilled = false
  #book: AddressBook = { changes: 0, isRecorded: false }
  /** When WhatsApp last left a query about a group unanswered. */
  readonly #silentAt = new BoundedMap<string, number>(MAX_SILENT)
  /** Ends the pause before due groups are queried again. */
  #wake: () => void = () => undefined

  constructor(options: DirectoryKeeperOptions) {
    this.#options = options
    this.groups = new GroupDirectory(options)
  }

  /** The account is logged in. */
  attach(link: DirectoryLink): void {
    this.#book = { changes: 0, isRecorded: false }
    this.#inBackground(link, () => this.#fill(link))
    this.#inBackground(link, () => this.#queryDue(link))
    this.readAddressBook(link)
  }

  /** Reads the phone's address book once, as soon as the phone has sent the key. */
  readAddressBook(link: DirectoryLink): void {
    const book = this.#book
    this.#inBackground(link, async () => {
      const { contacts } = await this.#findFilled(link)
      if (contacts || !(await link.readAddressBook())) return
      await this.#inOrder(link, () => {
        book.isRecorded = true
        return this.#noteAddressBook(book, link)
      })
    })
  }

  /**
   * Resolves when it is recorded that names of the address book are missing. If the service is killed before those
   * names are recorded, the whole address book is read again.
   */
  beginAddressBookChange(link: DirectoryLink): Promise<void> {
    const book = this.#book
    return this.#inOrder(link, async () => {
      book.changes += 1
      const { contacts } = await this.#findFilled(link)
      if (!contacts) return
      const { lease, store } = this.#options
      await untilStored(() => store.directory.recordContactsFilled(lease, null), link.closed)
      book.isRecorded = true
    })
  }

  /** The names of a change were passed to `recordContacts`. */
  endAddressBookChange(link: DirectoryLink): void {
    const book = this.#book
    this.#inBackground(link, () =>
      this.#inOrder(link, () => {
        book.changes -= 1
        return this.#noteAddressBook(book, link)
      }),
    )
  }

  recordContacts(contacts: readonly HeardContact[], link: DirectoryLink): void {
    const { lease, store } = this.#options
    const book = this.#book
    this.#inBackground(link, () =>
      this.#inOrder(link, async () => {
        // If this fails, the count stays above zero, and this link does not record the address book as complete. The
        // next link reads an incomplete address book again.
        book.changes += 1
        await untilStored(() => store.directory.recordContacts(lease, contacts), link.closed)
        book.changes -= 1
      }),
    )
  }

  /** Forgets what is known of the account, because another account may follow. */
  flush(): void {
    this.groups.flushAll()
    this.#isFilled = false
    this.#silentAt.clear()
  }

  /** Resolves when the changes are recorded, or when it is recorded that the group has to be queried. */
  async recordChanges(group: string, reported: ReportedChanges, link: DirectoryLink): Promise<void> {
    const { notice } = reported
    const changes = reported.changes.filter(({ kind }) => kind !== 'unclear')
    // The next message to the group asks WhatsApp, at most once in an hour.
    if (changes.length < reported.changes.length) this.groups.doubt(group)
    if (changes.length === 0) return
    const { lease, store, now } = this.#options
    const self = ownAddresses(link.self)
    const record = () => store.directory.recordGroupChanges(lease, group, changes, { self, now: now(), notice })
    const outcome = await this.#inOrder(link, () => untilStored(record, link.closed))
    this.groups.forget(group)
    if (outcome === 'unknown') this.#wake()
  }

  /** WhatsApp has described these groups after changes were missed. */
  recordListed(groups: readonly GroupDetails[], link: DirectoryLink): void {
    this.#inOrder(link, () => this.#recordAll(groups, link, this.#options.now())).catch(() => undefined)
  }

  async #noteAddressBook({ changes, isRecorded }: AddressBook, link: DirectoryLink): Promise<void> {
    const { lease, store, now } = this.#options
    if (changes > 0 || !isRecorded) return
    await untilStored(() => store.directory.recordContactsFilled(lease, now()), link.closed)
  }

  #findFilled({ closed }: DirectoryLink) {
    const { lease, store } = this.#options
    return untilStored(() => store.directory.findFilled(lease.instanceId), closed)
  }

  async #fill(link: DirectoryLink): Promise<void> {
    const { lease, store, now, logger } = this.#options
    const { instanceId } = lease
    if (!this.#isFilled && (await this.#findFilled(link)).groups) {
      this.#isFilled = true
      this.#wake()
    }
    while (!this.#isFilled && !link.closed.aborted) {
      const askedAt = now()
      const groups = await link.queryGroups().catch(() => null)
      if (groups === null) {
        await sleep(ASK_AGAIN_MS, undefined, { signal: link.closed, ref: false })
        continue
      }
      const ids = groups.map(({ id }) => id)
      await this.#inOrder(link, async () => {
        await this.#recordAll(groups, link, askedAt)
        await untilStored(() => store.directory.recordGroupsFilled(lease, ids, { askedAt, now: now() }), link.closed)
      })
      this.#isFilled = true
      this.#wake()
      logger.info({ instanceId, groups: ids.length }, 'directory.filled')
    }
  }

  /** Queries groups that notifications have mentioned but not described, including those from before a restart. */
  async #queryDue(link: DirectoryLink): Promise<void> {
    const { lease, store, now } = this.#options
    while (!link.closed.aborted) {
      const pause = new AbortController()
      this.#wake = () => pause.abort()
      const due = await untilStored(() => store.directory.listDueGroups(lease.instanceId), link.closed)
      let isWaiting = false
      let isAnswered = false
      for (const group of due) {
        const mayQuery = this.#mayQuery(group)
        const answer = mayQuery ? await this.groups.query(group.id, link) : 'silent'
        // The remaining groups are queried over the next link.
        if (link.closed.aborted) return
        if (mayQuery && answer === 'silent') this.#silentAt.set(group.id, now())
        isWaiting ||= answer === 'silent'
        isAnswered ||= answer !== 'silent'
      }
      // A group stays due if the query had begun before the notification.
      if (isAnswered) continue
      const signal = AbortSignal.any([link.closed, pause.signal])
      await sleep(isWaiting ? ASK_AGAIN_MS : FOREVER_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  /**
   * A group is queried at most once an hour, and only after all groups were read. A group that was just joined is
   * queried immediately, and at most once a minute while WhatsApp does not answer.
   */
  #mayQuery({ id, hasJoined, queriedAt }: DueGroup): boolean {
    const now = this.#options.now()
    const silentAt = this.#silentAt.get(id) ?? 0
    if (hasJoined) return now - silentAt >= ASK_AGAIN_MS
    return this.#isFilled && now - Math.max(queriedAt, silentAt) >= FRESH_MS
  }

  async #recordAll(groups: readonly GroupDetails[], link: DirectoryLink, askedAt: number): Promise<void> {
    const { lease, store, now } = this.#options
    const of = { self: ownAddresses(link.self), askedAt, now: now(), reason: 'listed' as const }
    await untilStored(() => store.directory.recordGroups(lease, groups, of), link.closed)
    for (const { id } of groups) this.groups.forget(id)
  }

  #inBackground(link: DirectoryLink, work: () => Promise<unknown>): void {
    const { logger, lease, signal } = this.#options
    work().catch(error => {
      if (link.closed.aborted || signal.aborted) return
      logger.warn({ err: error, instanceId: lease.instanceId }, 'directory.not_read')
    })
  }

  /** Writes nothing after the link has closed, because the rows may be erased by then. */
  #inOrder<T>({ closed }: DirectoryLink, work: () => Promise<T>): Promise<T> {
    const done = this.#changes.then(() => {
      closed.throwIfAborted()
      return work()
    })
    this.#changes = done.catch(() => undefined)
    return done
  }
}
