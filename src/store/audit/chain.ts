import { hash } from 'node:crypto'
import { sql } from 'kysely'
import type { Transaction } from '../engine/backend.ts'
import type { AuditLogTable } from '../engine/schema/audit.ts'
import type { Statements } from '../engine/statement.ts'
import type { AuditEntry, AuditNumber } from './audit.ts'

const HEAD = 1
export const NO_DIGEST: Uint8Array = Buffer.alloc(32)

/** SHA-256 over every column. Stored digests must stay valid, so the covered columns must never change. */
export function digestOf(row: AuditLogTable): Buffer {
  const { seq, at, actor, actor_name, action, instance, address, details, previous } = row
  const previousHex = Buffer.from(previous).toString('hex')
  const covered = [seq, at, actor, actor_name, action, instance, address, details, previousHex]
  return hash('sha256', JSON.stringify(covered), 'buffer')
}

/** Adds rows to the chain. */
export class AuditChain {
  readonly #statements: Statements

  constructor(statements: Statements) {
    this.#statements = statements
  }

  /** Locks the chain until the transaction ends. It should be the last lock of a transaction, to prevent deadlocks. */
  async append(tx: Transaction, entries: readonly { entry: AuditEntry; at: number }[]): Promise<AuditNumber[]> {
    if (entries.length === 0) return []
    const { db } = this.#statements
    let { seq, digest } = await this.#lockHead(tx)
    const added: AuditNumber[] = []
    for (const { entry, at } of entries) {
      seq += 1
      const row: AuditLogTable = {
        seq,
        at,
        actor: entry.actor,
        actor_name: entry.actorName,
        action: entry.action,
        instance: entry.instanceId,
        address: entry.address,
        details: JSON.stringify(entry.details),
        previous: digest,
      }
      await tx.query(db.insertInto('audit_log').values(row))
      digest = digestOf(row)
      added.push({ seq, digest: Buffer.from(digest).toString('hex') })
    }
    await tx.query(db.updateTable('audit_head').set({ seq, digest }).where('id', '=', HEAD))
    return added
  }

  /** The first call creates the row. */
  async #lockHead(tx: Transaction): Promise<{ seq: number; digest: Uint8Array }> {
    const { db } = this.#statements
    const [head] = await tx.query(
      db
        .insertInto('audit_head')
        .values({ id: HEAD, seq: 0, digest: NO_DIGEST })
        .onConflict(oc => oc.column('id').doUpdateSet({ id: sql`excluded.id` }))
        .returning(['seq', 'digest']),
    )
    return head!
  }
}
