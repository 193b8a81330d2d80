import { type RawBuilder, sql } from 'kysely'
import {
  ALERT_RULES,
  type Alert,
  type AlertChanges,
  type AlertDelays,
  type AlertRule,
  DEFAULT_ALERT_DELAYS,
  type Problem,
} from '../../domain/alert.ts'
import { newAlertTargetId } from '../../domain/ids.ts'
import { ALERTS_SCOPE, alertAddressPlace } from '../encryption/sealing.ts'
import type { Core } from '../engine/core.ts'
import { idBefore, toPage } from '../engine/cursor.ts'
import { oneByOne } from '../engine/operation.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { AlertsTable, AlertTargetsTable } from '../engine/schema/alerts.ts'
import {
  type AlertAddress,
  type Alerts,
  type AlertTarget,
  CLAIMED_FOR_MS,
  type DueNotices,
  type ListedAlert,
  LONGEST_RETRY_MS,
  MAX_ALERT_TARGETS,
  type NewAlertTarget,
} from './alerts.ts'
import { applyChanges } from './apply-changes.ts'
import { findProblems } from './problems.ts'

/** Changes of each kind in one commit. SQLite limits the parameters of a statement. */
const MAX_CHANGES = 1_000
/** Notices in one message. */
const MAX_NOTICES = 500

type NoticeRow = AlertsTable & { instance_name: string | null; is_end: number }

/** The rows of alerts belong to no instance: they outlive the instance that an alert is about. */
export class StoredAlerts implements Alerts {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core)
  }

  findProblems(now: number): Promise<Problem[]> {
    return findProblems(this.#core, now)
  }

  async listOpen(host: string): Promise<Alert[]> {
    const { db, now } = this.#core.statements
    const { reader } = this.#core
    const [rows, nodes] = await Promise.all([
      reader.query(db.selectFrom('alerts').selectAll().where('ended_at', 'is', null)),
      reader.query(db.selectFrom('nodes').select('id').where('seen_until', '>', now)),
    ])
    const others = new Set(nodes.map(({ id }) => hostOf(id)).filter(name => name !== host))
    return rows.filter(({ rule, subject }) => rule !== 'disk_nearly_full' || !others.has(subject)).map(toAlert)
  }

  async list(page: PageRequest, isOpen?: boolean): Promise<Page<ListedAlert>> {
    const { db } = this.#core.statements
    const rows = await this.#core.reader.query(
      db
        .selectFrom('alerts')
        .$if(isOpen !== undefined, query => query.where('ended_at', isOpen ? 'is' : 'is not', null))
        .leftJoin('instances', join => join.onRef('instances.id', '=', 'subject').on('deleted_at', 'is', null))
        .selectAll('alerts')
        .select('instances.name as instance_name')
        .where('alerts.id', '<', idBefore(page, 'alt'))
        .where('began_at', 'is not', null)
        .orderBy('alerts.id', 'desc')
        .limit(page.limit + 1),
    )
    return toPage(rows, page.limit, ({ id }) => id, toListed)
  }

  apply(all: AlertChanges, now: number): Promise<{ began: number; ended: number }> {
    const lists = Object.entries(all).map(([name, list]) => [name, list.slice(0, MAX_CHANGES)])
    return this.#core.write(this.#operations.apply, { changes: Object.fromEntries(lists) as AlertChanges, now })
  }

  async findDelays(): Promise<AlertDelays> {
    const rows = await this.#core.reader.query(this.#core.statements.db.selectFrom('alert_delays').selectAll())
    const stored = new Map(rows.map(({ rule, minutes }) => [rule, minutes]))
    const delayOf = (rule: AlertRule) => stored.get(rule) ?? (stored.has(rule) ? null : DEFAULT_ALERT_DELAYS[rule])
    return Object.fromEntries(ALERT_RULES.map(rule => [rule, delayOf(rule)])) as AlertDelays
  }

  setDelay(rule: AlertRule, minutes: number | null): Promise<void> {
    return this.#core.write(this.#operations.setDelay, { rule, minutes })
  }

  async createTarget(target: NewAlertTarget, now: number): Promise<AlertTarget | null> {
    const row: AlertTargetsTable = {
      ...this.#targetRow(newAlertTargetId(), target),
      created_at: now,
      due_at: 0,
      failures: 0,
      last_error: null,
      last_sent_at: null,
    }
    return (await this.#core.write(this.#operations.createTarget, row)) ? this.#toTarget(row) : null
  }

  async findTarget(id: string): Promise<AlertTarget | null> {
    const { db } = this.#core.statements
    const [row] = await this.#core.reader.query(db.selectFrom('alert_targets').selectAll().where('id', '=', id))
    return row === undefined ? null : this.#toTarget(row)
  }

  async listTargets(): Promise<AlertTarget[]> {
    const { db } = this.#core.statements
    const rows = await this.#core.reader.query(
      db.selectFrom('alert_targets').selectAll().orderBy('created_at').orderBy('id'),
    )
    return rows.map(row => this.#toTarget(row))
  }

  deleteTarget(id: string): Promise<boolean> {
    return this.#core.write(this.#operations.deleteTarget, { id })
  }

  async claimNotices(): Promise<DueNotices | null> {
    const { db, now } = this.#core.statements
    const [due] = await this.#core.reader.query(
      db
        .selectFrom('alert_targets')
        .select('id')
        .where(isDue(now))
        .where(({ exists, selectFrom }) =>
          exists(selectFrom('alert_notices').select('target_id').whereRef('target_id', '=', 'alert_targets.id')),
        )
        .orderBy('due_at')
        .limit(1),
    )
    if (due === undefined) return null
    const claimed = await this.#core.write(this.#operations.claim, due)
    if (claimed === null) return null
    const notices = claimed.notices.map(row => ({ alert: toListed(row), isEnd: row.is_end === 1 }))
    return { target: this.#toTarget(claimed.target), notices }
  }

  recordSent(due: DueNotices, now: number): Promise<void> {
    return this.#core.write(this.#operations.recordSent, { due, now })
  }

  recordFailed({ target: { id } }: DueNotices, error: string, retryInMs: number): Promise<void> {
    return this.#core.write(this.#operations.recordFailed, { id, error, retryInMs })
  }

  #targetRow(id: string, { channel, name, address }: NewAlertTarget) {
    const plain = Buffer.from(JSON.stringify(address))
    return { id, channel, name, address: this.#core.sealing.seal(ALERTS_SCOPE, alertAddressPlace(id), plain) }
  }

  #toTarget(row: AlertTargetsTable): AlertTarget {
    const { id, channel, name, address, created_at, failures, last_error, last_sent_at } = row
    const plain = this.#core.sealing.open(ALERTS_SCOPE, alertAddressPlace(id), address)
    return {
      id,
      channel,
      name,
      address: JSON.parse(plain.toString()) as AlertAddress,
      createdAt: created_at,
      failures,
      lastError: last_error,
      lastSentAt: last_sent_at,
    }
  }
}

function operations({ statements }: Core) {
  const { db, now: clock } = statements
  const noInstance = () => ''

  return {
    apply: oneByOne('alerts.apply', noInstance, applyChanges(statements)),

    setDelay: oneByOne(
      'alerts.setDelay',
      noInstance,
      async (tx, delay: { rule: AlertRule; minutes: number | null }) => {
        const { minutes } = delay
        await tx.query(
          db
            .insertInto('alert_delays')
            .values(delay)
            .onConflict(oc => oc.column('rule').doUpdateSet({ minutes })),
        )
      },
    ),

    createTarget: oneByOne('alerts.createTarget', noInstance, async (tx, row: AlertTargetsTable) => {
      const targets = await tx.query(db.selectFrom('alert_targets').select('id'))
      if (targets.length >= MAX_ALERT_TARGETS) return false
      await tx.query(db.insertInto('alert_targets').values(row))
      return true
    }),

    deleteTarget: oneByOne('alerts.deleteTarget', noInstance, async (tx, { id }: { id: string }) => {
      await tx.query(db.deleteFrom('alert_notices').where('target_id', '=', id))
      const deleted = await tx.query(db.deleteFrom('alert_targets').where('id', '=', id).returning('id'))
      return deleted.length > 0
    }),

    claim: oneByOne('alerts.claim', noInstance, async (tx, { id }: { id: string }) => {
      const [target] = await tx.query(
        db
          .updateTable('alert_targets')
          .set({ due_at: sql`${clock} + ${sql.lit(CLAIMED_FOR_MS)}` })
          .where('id', '=', id)
          .where(isDue(clock))
          .returningAll(),
      )
      if (target === undefined) return null
      const notices: NoticeRow[] = await tx.query(
        db
          .selectFrom('alert_notices')
          .innerJoin('alerts', 'alerts.id', 'alert_id')
          .leftJoin('instances', join => join.onRef('instances.id', '=', 'subject').on('deleted_at', 'is', null))
          .selectAll('alerts')
          .select(['instances.name as instance_name', 'is_end'])
          .where('target_id', '=', id)
          .orderBy('alert_id')
          .orderBy('is_end')
          .limit(MAX_NOTICES),
      )
      return notices.length === 0 ? null : { target, notices }
    }),

    recordSent: oneByOne(
      'alerts.recordSent',
      noInstance,
      async (tx, { due, now }: { due: DueNotices; now: number }) => {
        const { id } = due.target
        for (const { alert, isEnd } of due.notices)
          await tx.query(
            db
              .deleteFrom('alert_notices')
              .where('target_id', '=', id)
              .where('alert_id', '=', alert.id)
              .where('is_end', '=', isEnd ? 1 : 0),
          )
        await tx.query(
          db
            .updateTable('alert_targets')
            .set({ due_at: 0, failures: 0, last_error: null, last_sent_at: now })
            .where('id', '=', id),
        )
      },
    ),

    recordFailed: oneByOne(
      'alerts.recordFailed',
      noInstance,
      async (tx, { id, error, retryInMs }: { id: string; error: string; retryInMs: number }) => {
        const set = { due_at: sql<number>`${clock} + ${retryInMs}`, last_error: error }
        await tx.query(
          db
            .updateTable('alert_targets')
            .set(eb => ({ ...set, failures: eb('failures', '+', 1) }))
            .where('id', '=', id),
        )
      },
    ),
  }
}

function isDue(now: RawBuilder<number>) {
  return sql<boolean>`(due_at <= ${now} or due_at > ${now} + ${sql.lit(LONGEST_RETRY_MS)})`
}

/** The ID of a node is the name of its host, its process ID and a random part, joined by hyphens. */
function hostOf(nodeId: string): string {
  return nodeId.split('-').slice(0, -2).join('-')
}

function toAlert({ id, rule, subject, detail, since, began_at, gone_since, ended_at }: AlertsTable): Alert {
  return { id, rule, subject, detail, since, beganAt: began_at, goneSince: gone_since, endedAt: ended_at }
}

function toListed(row: AlertsTable & { instance_name: string | null }): ListedAlert {
  return { ...toAlert(row), instanceName: row.instance_name }
}
