import { type RawBuilder, sql } from 'kysely'
import type { AlertChanges } from '../../domain/alert.ts'
import { newAlertId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'

/** Alerts that ended are erased after this time. */
const KEPT_FOR_MS = 90 * 24 * 3_600_000

interface Input {
  changes: AlertChanges
  now: number
}

/** Applies the changes and queues the notices, in one transaction. */
export function applyChanges(statements: Statements) {
  const { db } = statements
  const setDetails = statements.update('alerts', { id: 'text' }, { detail: 'text' })

  async function notify(tx: Transaction, alertIds: readonly string[], isEnd: boolean, now: number): Promise<void> {
    if (alertIds.length === 0) return
    // After the clock was set back: otherwise a target would get nothing until the time of its creation comes again.
    await tx.query(db.updateTable('alert_targets').set({ created_at: now }).where('created_at', '>', now))
    const targets = await tx.query(db.selectFrom('alert_targets').select(['id', 'created_at']))
    // A target that was added after an alert began gets no notice of its end.
    const alerts = await tx.query(db.selectFrom('alerts').select(['id', 'began_at']).where('id', 'in', alertIds))
    for (const target of targets) {
      const rows = alerts
        .filter(alert => alert.began_at! >= target.created_at)
        .map(alert => ({ target_id: target.id, alert_id: alert.id, is_end: isEnd ? 1 : 0 }))
      if (rows.length > 0) await tx.query(db.insertInto('alert_notices').values(rows))
    }
  }

  async function insertNoticed(tx: Transaction, problem: AlertChanges['noticed'][number], now: number) {
    const { rule, subject, detail, since, beganAt } = problem
    const row = { id: newAlertId(now), rule, subject, detail, since, began_at: beganAt === null ? null : now }
    const inserted = await tx.query(
      db
        .insertInto('alerts')
        .values({ ...row, gone_since: null, ended_at: null })
        .onConflict(oc => oc.doNothing())
        .returning('id'),
    )
    return beganAt === null ? [] : inserted.map(({ id }) => id)
  }

  async function setWhere(
    tx: Transaction,
    column: 'began_at' | 'gone_since' | 'ended_at',
    value: number | null,
    ids: readonly string[],
    where: RawBuilder<boolean> = sql`true`,
  ): Promise<string[]> {
    if (ids.length === 0) return []
    const changed = await tx.query(
      db
        .updateTable('alerts')
        .set({ [column]: value })
        .where('id', 'in', ids)
        .where('ended_at', 'is', null)
        .where(where)
        .returning('id'),
    )
    return changed.map(({ id }) => id)
  }

  /** @returns the IDs of those that had been announced */
  async function end(tx: Transaction, ids: readonly string[], now: number): Promise<string[]> {
    if (ids.length === 0) return []
    await tx.query(db.deleteFrom('alerts').where('id', 'in', ids).where('began_at', 'is', null))
    return setWhere(tx, 'ended_at', now, ids)
  }

  return async (tx: Transaction, { changes, now }: Input): Promise<{ began: number; ended: number }> => {
    const began: string[] = []
    for (const problem of changes.noticed) began.push(...(await insertNoticed(tx, problem, now)))
    if (changes.reworded.length > 0) await tx.each(setDetails, changes.reworded)
    began.push(...(await setWhere(tx, 'began_at', now, changes.began, sql`began_at is null`)))
    await setWhere(tx, 'gone_since', now, changes.gone, sql`gone_since is null`)
    await setWhere(tx, 'gone_since', null, changes.returned)
    const ended = await end(tx, changes.ended, now)
    const dropped = await end(tx, changes.dropped, now)
    if (dropped.length > 0) await tx.query(db.deleteFrom('alert_notices').where('alert_id', 'in', dropped))
    await notify(tx, began, false, now)
    await notify(tx, ended, true, now)
    await tx.query(db.deleteFrom('alerts').where('ended_at', '<', now - KEPT_FOR_MS))
    const known = db.selectFrom('alerts').select('id')
    await tx.query(db.deleteFrom('alert_notices').where('alert_id', 'not in', known))
    return { began: began.length, ended: ended.length + dropped.length }
  }
}
