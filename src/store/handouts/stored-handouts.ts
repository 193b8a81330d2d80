import { sql } from 'kysely'
import { isLinked } from '../../domain/connection/connection.ts'
import type { InstanceId } from '../../domain/ids.ts'
import { parseInstances } from '../accounts/rows.ts'
import { requestedGoal } from '../connections/connection-columns.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { AccountsTable } from '../engine/schema/accounts.ts'
import type { HandoutsTable } from '../engine/schema/handouts.ts'
import type { ConnectionsTable } from '../engine/schema/instances.ts'
import type { Statements } from '../engine/statement.ts'
import {
  type FoundHandout,
  HANDOUT_PAUSE_MS,
  type Handout,
  type HandoutKey,
  type HandoutRequest,
  type Handouts,
  MAX_HANDOUTS,
  type NewHandout,
  PAIRING_CODES_PER_HANDOUT,
} from './handouts.ts'

interface Requesting {
  instanceId: InstanceId
  key: HandoutKey
  phone: string | null
}

export class StoredHandouts implements Handouts {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core.statements)
  }

  create(handout: NewHandout, now: number): Promise<Handout | 'full' | 'linked' | null> {
    return this.#core.write(this.#operations.create, { handout, now })
  }

  async list(instanceId: InstanceId): Promise<Handout[] | null> {
    const { db } = this.#core.statements
    const [instance] = await this.#core.reader.query(
      db.selectFrom('instances').select('id').where('id', '=', instanceId).where('deleted_at', 'is', null),
    )
    if (instance === undefined) return null
    const rows = await this.#core.reader.query(
      db
        .selectFrom('handouts')
        .selectAll()
        .where('instance_id', '=', instanceId)
        .orderBy('created_at', 'desc')
        .orderBy('id'),
    )
    return rows.map(toHandout)
  }

  async revoke(instanceId: InstanceId, id: string): Promise<boolean> {
    const { found, ended } = await this.#core.write(this.#operations.revoke, { instanceId, id })
    if (ended) this.#announce(instanceId)
    return found
  }

  async endExpired(): Promise<void> {
    const { reader, statements } = this.#core
    for (const expired of await reader.query(expiredUnderWay(statements)))
      if (await this.#core.write(this.#operations.expire, expired)) this.#announce(expired.instanceId)
  }

  async find(key: HandoutKey): Promise<FoundHandout> {
    const row = await this.#findRow(key.digest)
    if (row === undefined) return { kind: 'none' }
    const refused = refusalOf(row, key)
    return refused === null ? { kind: 'found', handout: toHandout(row) } : { kind: refused }
  }

  async request(key: HandoutKey, phone: string | null): Promise<HandoutRequest> {
    const row = await this.#findRow(key.digest)
    if (row === undefined) return { kind: 'none' }
    const instanceId = row.instance_id
    const outcome = await this.#core.write(this.#operations.request, { instanceId, key, phone })
    if (outcome.kind === 'requested') this.#announce(instanceId)
    return outcome
  }

  async #findRow(digest: Uint8Array): Promise<HandoutsTable | undefined> {
    return (await this.#core.reader.query(openWith(this.#core.statements, digest))).find(isCreatorEntitled)
  }

  #announce(instanceId: InstanceId): void {
    this.#core.hints.publish('goal', instanceId)
    this.#core.hints.publish('connection', instanceId)
  }
}

function openWith({ db, now }: Statements, digest: Uint8Array) {
  return db
    .selectFrom('handouts')
    .innerJoin('instances', 'instances.id', 'handouts.instance_id')
    .leftJoin('accounts', 'accounts.id', 'handouts.created_by')
    .selectAll('handouts')
    .select(['accounts.role', 'accounts.instances'])
    .where('handouts.token_digest', '=', digest)
    .where('handouts.expires_at', '>', now)
    .where('instances.deleted_at', 'is', null)
}

type OpenRow = HandoutsTable & { [column in 'role' | 'instances']: AccountsTable[column] | null }

/** The role and instances are null if the account was removed. */
function isCreatorEntitled({ created_by, instance_id, role, instances }: OpenRow): boolean {
  if (created_by === null) return true
  return role !== null && role !== 'viewer' && (parseInstances(instances)?.includes(instance_id) ?? true)
}

function expiredUnderWay({ db, now }: Statements) {
  return db
    .selectFrom('handouts')
    .innerJoin('connections', 'connections.instance_id', 'handouts.instance_id')
    .innerJoin('instances', 'instances.id', 'handouts.instance_id')
    .select(['handouts.instance_id as instanceId', 'handouts.id'])
    .where('handouts.expires_at', '<=', now)
    .where('handouts.used_at', 'is', null)
    .whereRef('handouts.goal_version', '=', 'connections.goal_version')
    .where('connections.goal', '=', 'online')
    .where('connections.phone', 'is', null)
    .where('instances.deleted_at', 'is', null)
}

function refusalOf(row: HandoutsTable, { browser }: HandoutKey): 'none' | 'in_use' | null {
  const isOwn = row.browser_digest !== null && Buffer.from(row.browser_digest).equals(browser)
  if (isOwn) return null
  if (row.used_at !== null) return 'none'
  return row.browser_digest === null ? null : 'in_use'
}

function toHandout(row: HandoutsTable): Handout {
  return {
    id: row.id,
    instanceId: row.instance_id,
    title: row.title,
    returnUrl: row.return_url,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    openedAt: row.opened_at,
    pairingCodesLeft: Math.max(0, PAIRING_CODES_PER_HANDOUT - row.pairing_codes),
    usedAt: row.used_at,
  }
}

function operations(statements: Statements) {
  const { db, now: clock } = statements

  async function lockConnection(tx: Transaction, instanceId: InstanceId) {
    const [found] = await tx.query(
      statements.locking(
        db
          .selectFrom('connections')
          .innerJoin('instances', 'instances.id', 'connections.instance_id')
          .select(['state', 'phone', 'goal', 'goal_version', 'pairing_phone', clock.as('now')])
          .where('connections.instance_id', '=', instanceId)
          .where('instances.deleted_at', 'is', null),
        'update',
        'connections',
      ),
    )
    return found
  }

  async function setGoal(tx: Transaction, instanceId: InstanceId, goal: 'online' | 'logged_out', phone: string | null) {
    const [row] = await tx.query(
      db
        .updateTable('connections')
        .set(eb => ({ goal: requestedGoal(goal), goal_version: eb('goal_version', '+', 1), pairing_phone: phone }))
        .where('instance_id', '=', instanceId)
        .returning('goal_version'),
    )
    return row!.goal_version
  }

  /** Ends the link's last request, unless somebody else made a later request or a number was linked. */
  async function withdraw(
    tx: Transaction,
    instanceId: InstanceId,
    { state, phone, goal_version }: Pick<ConnectionsTable, 'state' | 'phone' | 'goal_version'>,
    row: Pick<HandoutsTable, 'goal_version' | 'used_at'>,
  ): Promise<boolean> {
    const isUnderWay = row.used_at === null && row.goal_version === goal_version && phone === null && !isLinked(state)
    if (isUnderWay) await setGoal(tx, instanceId, 'logged_out', null)
    return isUnderWay
  }

  return {
    create: oneByOne(
      'handouts.create',
      ({ handout }: { handout: NewHandout; now: number }) => handout.instanceId,
      async (tx, { handout, now }): Promise<Handout | 'full' | 'linked' | null> => {
        const { id, instanceId, title, returnUrl, digest, lastsMs, createdBy } = handout
        const connection = await lockConnection(tx, instanceId)
        if (connection === undefined) return null
        if (connection.phone !== null || isLinked(connection.state)) return 'linked'
        const open = await tx.query(
          db
            .selectFrom('handouts')
            .select('id')
            .where('instance_id', '=', instanceId)
            .where('used_at', 'is', null)
            .where('expires_at', '>', clock)
            .limit(MAX_HANDOUTS),
        )
        if (open.length >= MAX_HANDOUTS) return 'full'
        const [row] = await tx.query(
          db
            .insertInto('handouts')
            .values({
              instance_id: instanceId,
              id,
              token_digest: digest,
              title,
              return_url: returnUrl,
              created_at: now,
              expires_at: sql<number>`${clock} + ${lastsMs}`,
              pairing_codes: 0,
              created_by: createdBy,
            })
            .returningAll(),
        )
        return toHandout(row!)
      },
      outcome => typeof outcome === 'object' && outcome !== null,
    ),

    revoke: oneByOne(
      'handouts.revoke',
      ({ instanceId }: { instanceId: InstanceId; id: string }) => instanceId,
      async (tx, { instanceId, id }): Promise<{ found: boolean; ended: boolean }> => {
        const connection = await lockConnection(tx, instanceId)
        if (connection === undefined) return { found: false, ended: false }
        const [row] = await tx.query(
          db
            .deleteFrom('handouts')
            .where('instance_id', '=', instanceId)
            .where('id', '=', id)
            .returning(['goal_version', 'used_at']),
        )
        if (row === undefined) return { found: false, ended: false }
        return { found: true, ended: await withdraw(tx, instanceId, connection, row) }
      },
      ({ found }) => found,
    ),

    expire: oneByOne(
      'handouts.expire',
      ({ instanceId }: { instanceId: InstanceId; id: string }) => instanceId,
      async (tx, { instanceId, id }): Promise<boolean> => {
        const connection = await lockConnection(tx, instanceId)
        const [row] = await tx.query(
          db
            .selectFrom('handouts')
            .select(['goal_version', 'used_at'])
            .where('instance_id', '=', instanceId)
            .where('id', '=', id)
            .where('expires_at', '<=', clock),
        )
        if (connection === undefined || row === undefined || connection.goal !== 'online') return false
        return withdraw(tx, instanceId, connection, row)
      },
    ),

    request: oneByOne(
      'handouts.request',
      ({ instanceId }: Requesting) => instanceId,
      async (tx, { instanceId, key, phone }): Promise<HandoutRequest> => {
        const connection = await lockConnection(tx, instanceId)
        const open = await tx.query(statements.locking(openWith(statements, key.digest), 'update', 'handouts'))
        const row = open.find(isCreatorEntitled)
        if (connection === undefined || row === undefined) return { kind: 'none' }
        const refused = refusalOf(row, key)
        if (refused !== null) return { kind: refused }
        if (row.used_at !== null || connection.phone !== null || isLinked(connection.state)) return { kind: 'linked' }
        const { now, state, goal, pairing_phone } = connection
        const ofRow = db.updateTable('handouts').where('instance_id', '=', instanceId).where('id', '=', row.id)
        const bound = { browser_digest: key.browser, opened_at: row.opened_at ?? now }
        if (phone === null && state === 'linking' && goal === 'online' && pairing_phone === null) {
          // The link is bound to this browser: `refusalOf` has refused all others.
          if (row.browser_digest !== null) return { kind: 'under_way' }
          await tx.query(ofRow.set(bound))
          return { kind: 'requested' }
        }
        const waitMs = (row.requested_at ?? 0) + HANDOUT_PAUSE_MS - now
        // A longer wait means that the clock was set back since the last request.
        if (waitMs > 0 && waitMs <= HANDOUT_PAUSE_MS) return { kind: 'too_soon', waitMs }
        if (phone !== null && row.pairing_codes >= PAIRING_CODES_PER_HANDOUT) return { kind: 'codes_spent' }
        const goalVersion = await setGoal(tx, instanceId, 'online', phone)
        await tx.query(
          ofRow.set({
            ...bound,
            requested_at: now,
            goal_version: goalVersion,
            pairing_codes: row.pairing_codes + (phone === null ? 0 : 1),
          }),
        )
        return { kind: 'requested' }
      },
      ({ kind }) => kind === 'requested',
    ),
  }
}
