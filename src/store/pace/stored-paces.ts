import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { Waiting } from '../../domain/message.ts'
import { dayStart, nextDay, type Pace, quietUntil } from '../../domain/pace.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne, oneByOne } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import type { PaceState, Paces, PaceTurn } from './paces.ts'
import { WaitingReader } from './waiting.ts'

const MINUTE_MS = 60_000
const GRANTED: PaceTurn = { kind: 'granted' }

interface Taking {
  lease: Lease
  message: MessageId
  recipient: string | null
  now: number
}

export class StoredPaces implements Paces {
  readonly #core: Core
  readonly #waiting: WaitingReader
  readonly #set
  readonly #take

  constructor(core: Core) {
    this.#core = core
    this.#waiting = new WaitingReader(core)
    this.#set = oneByOne(
      'pace.set',
      ({ instanceId }: { instanceId: InstanceId; pace: Pace; now: number }) => instanceId,
      async (tx, { instanceId, pace, now }) => {
        const { db } = core.statements
        const [instance] = await tx.query(
          core.statements.locking(
            db.selectFrom('instances').select('id').where('id', '=', instanceId).where('deleted_at', 'is', null),
            'key share',
            'instances',
          ),
        )
        if (!instance) return false
        const before = await this.#lock(tx, instanceId)
        // A wait by the old pace ends now, and the age of its messages counts from now (`Pacing.waitedUntil`).
        const row = {
          settings: JSON.stringify(pace),
          opens_at: Math.min(before?.opensAt ?? 0, now),
          new_recipients_at: Math.min(before?.newRecipientsAt ?? 0, now),
        }
        await tx.query(
          db
            .insertInto('paces')
            .values({ instance_id: instanceId, ...row })
            .onConflict(oc => oc.column('instance_id').doUpdateSet(row)),
        )
        return true
      },
    )
    this.#take = fencedOneByOne('pace.take', (tx, taking: Taking) => this.#decide(tx, taking))
  }

  async find(instanceId: InstanceId): Promise<PaceState | null> {
    const [row] = await this.#core.reader.query(this.#ofInstance(instanceId))
    return row === undefined ? null : toState(row)
  }

  findWaits(instanceId: InstanceId, ids: readonly MessageId[], now: number): Promise<ReadonlyMap<MessageId, Waiting>> {
    return this.#waiting.find(instanceId, ids, now)
  }

  async set(instanceId: InstanceId, pace: Pace, now: number): Promise<boolean> {
    const isSet = await this.#core.write(this.#set, { instanceId, pace, now })
    if (isSet) this.#core.hints.publish('pace', instanceId)
    return isSet
  }

  take(lease: Lease, message: MessageId, recipient: string | null, now: number): Promise<PaceTurn> {
    return this.#core.write(this.#take, { lease, message, recipient, now })
  }

  async #decide(tx: Transaction, { lease: { instanceId }, message, recipient, now }: Taking): Promise<PaceTurn> {
    const { db } = this.#core.statements
    const state = await this.#lock(tx, instanceId)
    if (state === null) return GRANTED
    const { pace } = state
    const today = dayStart(pace, now)
    const found = await tx.query(
      db
        .selectFrom('pace_uses')
        .select(['message_id', 'recipient', 'at'])
        .where('instance_id', '=', instanceId)
        .where('at', '>=', Math.min(today, now - MINUTE_MS))
        .orderBy('at'),
    )
    if (found.some(({ at }) => at > now)) await this.#correct(tx, instanceId, state, now)
    const uses = found.map(use => ({ ...use, at: Math.min(use.at, now) }))
    const own = uses.find(({ message_id }) => message_id === message)
    if (own !== undefined && own.at > now - MINUTE_MS && quietUntil(pace, now) === null) return GRANTED
    const [failed] = await tx.query(
      db
        .selectFrom('messages')
        .select('id')
        .where('instance_id', '=', instanceId)
        .where('id', '=', message)
        .where('failed_at', 'is not', null),
    )
    if (failed) return { kind: 'gone' }
    const wait = waitOf(pace, uses, recipient, { now, today })
    if (wait !== null) {
      const moment = wait.for === 'all' ? { opens_at: wait.until } : { new_recipients_at: wait.until }
      await tx.query(db.updateTable('paces').set(moment).where('instance_id', '=', instanceId))
      return { kind: 'waits', ...wait }
    }
    await tx.query(
      db
        .deleteFrom('pace_uses')
        .where('instance_id', '=', instanceId)
        .where(eb =>
          eb.or([
            eb('message_id', '=', message),
            eb('at', '<=', now - MINUTE_MS).and(eb.or([eb('recipient', 'is', null), eb('at', '<', today)])),
          ]),
        ),
    )
    const use = {
      instance_id: instanceId,
      message_id: message,
      recipient: recipient ?? own?.recipient ?? null,
      at: now,
    }
    await tx.query(db.insertInto('pace_uses').values(use))
    return GRANTED
  }

  /** The clock was set back: what was recorded for later than now counts from now on. */
  async #correct(tx: Transaction, instanceId: InstanceId, state: PaceState, now: number): Promise<void> {
    const { db } = this.#core.statements
    const moments = {
      opens_at: Math.min(state.opensAt, now),
      new_recipients_at: Math.min(state.newRecipientsAt, now),
    }
    await tx.query(
      db.updateTable('pace_uses').set({ at: now }).where('instance_id', '=', instanceId).where('at', '>', now),
    )
    await tx.query(db.updateTable('paces').set(moments).where('instance_id', '=', instanceId))
  }

  async #lock(tx: Transaction, instanceId: InstanceId): Promise<PaceState | null> {
    const [row] = await tx.query(this.#core.statements.locking(this.#ofInstance(instanceId), 'update', 'paces'))
    return row === undefined ? null : toState(row)
  }

  #ofInstance(instanceId: InstanceId) {
    return this.#core.statements.db
      .selectFrom('paces')
      .select(['settings', 'opens_at', 'new_recipients_at'])
      .where('instance_id', '=', instanceId)
  }
}

function toState(row: { settings: string; opens_at: number; new_recipients_at: number }): PaceState {
  return { pace: JSON.parse(row.settings), opensAt: row.opens_at, newRecipientsAt: row.new_recipients_at }
}

/** @param uses from the start of the day or of the minute, whichever is earlier, until now, oldest first */
function waitOf(
  pace: Pace,
  uses: readonly { recipient: string | null; at: number }[],
  recipient: string | null,
  { now, today }: { now: number; today: number },
): { for: 'all' | 'new_recipients'; until: number } | null {
  const { perMinute, newRecipientsPerDay } = pace
  const quiet = quietUntil(pace, now)
  if (quiet !== null) return { for: 'all', until: quiet }
  if (recipient !== null && newRecipientsPerDay !== null) {
    const known = new Set(uses.flatMap(use => (use.recipient !== null && use.at >= today ? use.recipient : [])))
    if (!known.has(recipient) && known.size >= newRecipientsPerDay)
      return { for: 'new_recipients', until: nextDay(pace, now) }
  }
  if (perMinute === null) return null
  const recent = uses.filter(({ at }) => at > now - MINUTE_MS)
  if (recent.length < perMinute) return null
  return { for: 'all', until: recent[recent.length - perMinute]!.at + MINUTE_MS }
}
