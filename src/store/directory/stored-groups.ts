import { type Selectable, sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import {
  applyChanges,
  type GroupChange,
  type GroupDetails,
  type GroupMember,
  ownStepIn,
} from '../../domain/recipients/group.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { nameAfterId, toPage } from '../engine/cursor.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { GroupsTable } from '../engine/schema/directory.ts'
import { searchPatterns } from '../engine/search-patterns.ts'
import type { EventRecorder, NewEvent } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import type { DescribedGroup, Directory, DueGroup, KnownGroup, ListedGroup } from './directory.ts'
import { groupEventsOf } from './group-reports.ts'
import { columnsOf, LISTED, NOT_DUE, noMember, noticesOf, toDetails, toKnown, toListed, UNNAMED } from './group-rows.ts'
import { isKnown, NO_NOTICES, withNotice } from './known-notices.ts'

/** Groups in one commit. A large group has 100 KB. */
const STEP = 20
/** Members whose names are read by one query. */
const NAMES_STEP = 200
/** WhatsApp's denials are kept for a day. */
const DENIED_MS = 24 * 60 * 60_000

const IS_MEMBER = sql<boolean>`member = 1`

interface Reported {
  /** Whether an event was recorded. */
  recorded: boolean
  deliverable: boolean
}

const NOTHING: Reported = { recorded: false, deliverable: false }

type GroupColumns = Omit<Selectable<GroupsTable>, 'instance_id' | 'id'>

type Recording = Parameters<Directory['recordGroups']>[2]
type ChangeContext = Parameters<Directory['recordGroupChanges']>[3]

interface OneGroup {
  lease: Lease
  id: string
  now: number
}

/** The groups of the directory. */
export class StoredGroups {
  readonly #core: Core
  readonly #recorder: EventRecorder
  readonly #record
  readonly #change
  readonly #deny
  readonly #fill
  readonly #fillContacts

  constructor(core: Core, recorder: EventRecorder) {
    this.#core = core
    this.#recorder = recorder
    this.#record = fencedOneByOne(
      'directory.groups',
      (tx, input: { lease: Lease; groups: readonly GroupDetails[]; of: Recording }) => this.#recordAll(tx, input),
    )
    this.#change = fencedOneByOne(
      'directory.change',
      (tx, input: OneGroup & ChangeContext & { changes: readonly GroupChange[] }) => this.#changeOne(tx, input),
    )
    this.#deny = fencedOneByOne('directory.deny', (tx, input: OneGroup & { askedAt: number }) =>
      this.#denyOne(tx, input),
    )
    this.#fillContacts = fencedOneByOne(
      'directory.fillContacts',
      (tx, { lease, at }: { lease: Lease; at: number | null }) =>
        this.#noteFill(tx, lease.instanceId, { contacts_at: at }),
    )
    this.#fill = fencedOneByOne(
      'directory.fill',
      (tx, input: { lease: Lease; ids: readonly string[]; askedAt: number; now: number }) =>
        this.#noteFilled(tx, input),
    )
  }

  async list(instanceId: InstanceId, page: PageRequest, search?: string): Promise<Page<ListedGroup>> {
    const { reader, statements } = this.#core
    const after = nameAfterId(page)
    let query = statements.db
      .selectFrom('groups')
      .select(LISTED)
      .where('instance_id', '=', instanceId)
      .where(IS_MEMBER)
      .orderBy('search_name')
      .orderBy('id')
      .limit(page.limit + 1)
    if (after !== null)
      query = query.where(eb => eb(eb.refTuple('search_name', 'id'), '>', eb.tuple(after.name, after.id)))
    if (search !== undefined) {
      const { encoded } = searchPatterns(search)
      query = query.where(sql<boolean>`search_name like ${encoded} escape '\\'`)
    }
    return toPage(await reader.query(query), page.limit, row => `${row.id} ${row.search_name}`, toListed)
  }

  async read(instanceId: InstanceId, id: string): Promise<KnownGroup | null> {
    const [row] = await this.#core.reader.query(this.#select(instanceId, id))
    return row ? toKnown(row) : null
  }

  async find(instanceId: InstanceId, id: string): Promise<DescribedGroup | null> {
    const [row] = await this.#core.reader.query(this.#select(instanceId, id))
    const details = row && toDetails(row)
    if (!row || !details) return null
    const names = await this.#namesOf(instanceId, details.members)
    const members = details.members.map(member => ({
      ...member,
      name: names.get(member.phone ?? '') ?? names.get(member.lid ?? '') ?? null,
    }))
    return { ...toListed(row), description: details.description, members }
  }

  async record(lease: Lease, groups: readonly GroupDetails[], of: Recording): Promise<void> {
    for (let at = 0; at < groups.length; at += STEP)
      this.#announce(lease, await this.#core.write(this.#record, { lease, groups: groups.slice(at, at + STEP), of }))
  }

  async change(
    lease: Lease,
    id: string,
    changes: readonly GroupChange[],
    of: ChangeContext,
  ): Promise<'recorded' | 'unknown'> {
    const reported = await this.#core.write(this.#change, { lease, id, changes, ...of })
    if (reported === null) return 'unknown'
    this.#announce(lease, reported)
    return 'recorded'
  }

  async deny(lease: Lease, id: string, of: { askedAt: number; now: number }): Promise<void> {
    this.#announce(lease, await this.#core.write(this.#deny, { lease, id, ...of }))
  }

  async listDue(instanceId: InstanceId): Promise<DueGroup[]> {
    const rows = await this.#core.reader.query(
      this.#core.statements.db
        .selectFrom('groups')
        .select(['id', 'has_joined', 'queried_at'])
        .where('instance_id', '=', instanceId)
        .where('query_due_at', 'is not', null),
    )
    return rows.map(({ id, has_joined, queried_at }) => ({ id, hasJoined: has_joined === 1, queriedAt: queried_at }))
  }

  async findFilled(instanceId: InstanceId): Promise<{ groups: boolean; contacts: boolean }> {
    const [row] = await this.#core.reader.query(
      this.#core.statements.db
        .selectFrom('directory_fills')
        .select(['groups_at', 'contacts_at'])
        .where('instance_id', '=', instanceId),
    )
    return { groups: row?.groups_at != null, contacts: row?.contacts_at != null }
  }

  recordContactsFilled(lease: Lease, at: number | null): Promise<void> {
    return this.#core.write(this.#fillContacts, { lease, at })
  }

  async recordGroupsFilled(lease: Lease, ids: readonly string[], of: { askedAt: number; now: number }): Promise<void> {
    this.#announce(lease, await this.#core.write(this.#fill, { lease, ids, ...of }))
  }

  #announce({ instanceId }: Lease, { recorded, deliverable }: Reported): void {
    if (deliverable) this.#core.hints.publish('deliveries', instanceId)
    if (recorded) this.#core.hints.publish('log', instanceId)
  }

  #select(instanceId: InstanceId, id: string) {
    return this.#core.statements.db
      .selectFrom('groups')
      .selectAll()
      .where('instance_id', '=', instanceId)
      .where('id', '=', id)
  }

  /** The names of the members, by number and by LID. */
  async #namesOf(instanceId: InstanceId, members: readonly GroupMember[]): Promise<Map<string, string>> {
    const names = new Map<string, string>()
    for (let at = 0; at < members.length; at += NAMES_STEP) {
      const addresses = members.slice(at, at + NAMES_STEP).flatMap(({ phone, lid }) => [phone ?? '', lid ?? ''])
      const rows = await this.#core.reader.query(
        this.#core.statements.db
          .selectFrom('contacts')
          .select(['number', 'name', 'saved_name'])
          .where('instance_id', '=', instanceId)
          .where('number', 'in', addresses),
      )
      for (const { number, name, saved_name } of rows) {
        const known = saved_name ?? name
        if (known !== null) names.set(number, JSON.parse(known))
      }
    }
    return names
  }

  async #recordAll(
    tx: Transaction,
    { lease, groups, of }: { lease: Lease; groups: readonly GroupDetails[]; of: Recording },
  ): Promise<Reported> {
    const events: NewEvent[] = []
    for (const group of groups) events.push(...(await this.#recordOne(tx, lease, group, of)))
    return this.#report(tx, lease, events)
  }

  async #recordOne(tx: Transaction, { instanceId }: Lease, group: GroupDetails, of: Recording): Promise<NewEvent[]> {
    const { self, askedAt, now, reason } = of
    const [row] = await this.#lock(tx, instanceId, group.id)
    const dueAt = row?.query_due_at ?? null
    // A time after that of the answer is from a clock that was ahead.
    const wasDue = dueAt !== null && (dueAt <= askedAt || dueAt > now)
    // A notification is newer than the answer, or a clock was ahead. If a notification requested the query and nothing is
    // known about the group, a clock was ahead.
    const isOld = row !== undefined && row.as_of >= askedAt && !(wasDue && row.member === 0)
    await this.#write(tx, instanceId, group.id, {
      ...(!isOld && { ...columnsOf(group, self, noticesOf(row)), as_of: now }),
      ...(!isOld && { query_due_at: wasDue ? null : dueAt, has_joined: 0 }),
      queried_at: reason === 'listed' ? (row?.queried_at ?? 0) : now,
    })
    if (isOld) return []
    const before = row ? toDetails(row) : null
    return groupEventsOf(instanceId, { before, after: group, self, hasJoined: row?.has_joined === 1 }, now)
  }

  /** @returns null if the group has to be queried, which its row records */
  async #changeOne(
    tx: Transaction,
    { lease, id, changes, self, now, notice }: OneGroup & ChangeContext & { changes: readonly GroupChange[] },
  ): Promise<Reported | null> {
    const { instanceId } = lease
    const [row] = await this.#lock(tx, instanceId, id)
    const known = noticesOf(row)
    if (notice && isKnown(known, notice)) return row?.query_due_at == null ? NOTHING : null
    const notices = notice ? withNotice(known, notice) : known
    const before = row ? toDetails(row) : null
    const described = applyChanges(before, changes, self)
    const after = described && { ...described, id }
    const step = ownStepIn(changes, self)
    if (after === null && (before === null || step === 'enters')) {
      const hasJoined = step === 'enters'
      const isLeft = row !== undefined && row.query_due_at === null && !hasJoined
      const isDue = !isLeft && step !== 'leaves'
      const has_joined = hasJoined || row?.has_joined === 1 ? 1 : 0
      const left = step === 'leaves' && { ...NOT_DUE, as_of: now }
      const due = isDue && { query_due_at: now, has_joined }
      await this.#write(tx, instanceId, id, { ...noMember(notices), ...left, ...due })
      return isDue ? null : NOTHING
    }
    const columns = after ? columnsOf(after, self, notices) : noMember(notices)
    await this.#write(tx, instanceId, id, { ...columns, ...NOT_DUE, as_of: now })
    return this.#report(tx, lease, groupEventsOf(instanceId, { before, after, self, hasJoined: true }, now))
  }

  async #denyOne(tx: Transaction, { lease, id, askedAt, now }: OneGroup & { askedAt: number }): Promise<Reported> {
    const { instanceId } = lease
    const { db } = this.#core.statements
    await tx.query(
      db
        .deleteFrom('groups')
        .where('instance_id', '=', instanceId)
        .where('member', '=', 0)
        .where('subject', '=', UNNAMED.subject)
        .where('query_due_at', 'is', null)
        .where('queried_at', '<', now - DENIED_MS)
        .where('as_of', '<', now - DENIED_MS),
    )
    const [row] = await this.#lock(tx, instanceId, id)
    // A later time is from a clock that was ahead. A group may become due and be queried in the same millisecond.
    const isFrom = (at: number, since: number) => at >= since && at <= now
    const isOld = row && (isFrom(row.as_of, askedAt) || isFrom(row.query_due_at ?? 0, askedAt + 1))
    const denied = isOld ? null : { ...noMember(noticesOf(row)), ...NOT_DUE, as_of: now }
    // The row may be from an answer that is older than the denial, so WhatsApp may be asked again at once.
    await this.#write(tx, instanceId, id, { ...denied, queried_at: isOld && row.member === 1 ? 0 : now })
    return this.#report(tx, lease, row && !isOld ? leftOf(instanceId, row, now) : [])
  }

  async #noteFilled(
    tx: Transaction,
    { lease, ids, askedAt, now }: { lease: Lease; ids: readonly string[]; askedAt: number; now: number },
  ): Promise<Reported> {
    const { instanceId } = lease
    const present = new Set(ids)
    const old = await tx.query(
      this.#core.statements.db
        .selectFrom('groups')
        .selectAll()
        .where('instance_id', '=', instanceId)
        .where(IS_MEMBER)
        .where('as_of', '<', askedAt),
    )
    const events: NewEvent[] = []
    for (const row of old) {
      if (present.has(row.id)) continue
      await this.#write(tx, instanceId, row.id, { ...noMember(noticesOf(row)), as_of: now })
      events.push(...leftOf(instanceId, row, now))
    }
    await this.#noteFill(tx, instanceId, { groups_at: now })
    return this.#report(tx, lease, events)
  }

  async #report(tx: Transaction, { instanceId }: Lease, events: readonly NewEvent[]): Promise<Reported> {
    if (events.length === 0) return NOTHING
    const { deliverable } = await this.#recorder.record(tx, events)
    return { recorded: true, deliverable: deliverable.has(instanceId) }
  }

  async #noteFill(
    tx: Transaction,
    instance_id: InstanceId,
    at: { groups_at: number } | { contacts_at: number | null },
  ) {
    await tx.query(
      this.#core.statements.db
        .insertInto('directory_fills')
        .values({ instance_id, groups_at: null, ...at })
        .onConflict(oc => oc.column('instance_id').doUpdateSet(at)),
    )
  }

  #lock(tx: Transaction, instanceId: InstanceId, id: string) {
    return tx.query(this.#core.statements.locking(this.#select(instanceId, id), 'update', 'groups'))
  }

  /** Inserts the row, or changes it. A new row needs all columns. */
  async #write(tx: Transaction, instance_id: InstanceId, id: string, columns: Partial<GroupColumns>): Promise<void> {
    const { db } = this.#core.statements
    const changed = await tx.query(
      db.updateTable('groups').set(columns).where('instance_id', '=', instance_id).where('id', '=', id).returning('id'),
    )
    if (changed.length > 0) return
    const row = { ...UNNAMED, ...noMember(NO_NOTICES), ...NOT_DUE, as_of: 0, queried_at: 0, ...columns }
    await tx.query(db.insertInto('groups').values({ instance_id, id, ...row }))
  }
}

function leftOf(instanceId: InstanceId, row: Parameters<typeof toDetails>[0], now: number): NewEvent[] {
  const self = { phone: null, lid: null }
  return groupEventsOf(instanceId, { before: toDetails(row), after: null, self, hasJoined: false }, now)
}
