import type { Lease } from '../leases/leases.ts'
import type { Transaction } from './backend.ts'
import type { RowsStatement, Statements } from './statement.ts'

/** Finds the leases that are still held, and locks them until the transaction ends. */
export class Fence {
  readonly #find: RowsStatement<{ instance_id: string; owner: string; epoch: number }, LeaseRow>

  constructor(statements: Statements) {
    this.#find = statements.rows({ instance_id: 'text', owner: 'text', epoch: 'integer' }, db =>
      statements.locking(
        db
          .selectFrom('input')
          .innerJoin('leases', join =>
            join
              .onRef('leases.instance_id', '=', 'input.instance_id')
              .onRef('leases.owner', '=', 'input.owner')
              .onRef('leases.epoch', '=', 'input.epoch'),
          )
          .select(['leases.instance_id', 'leases.owner', 'leases.epoch']),
        // A renewal is not blocked by this lock, because it changes no key. A takeover is.
        'key share',
        'leases',
      ),
    )
  }

  async held(tx: Transaction, leases: readonly Lease[]): Promise<Set<string>> {
    const distinct = new Map(leases.map(lease => [leaseKey(lease), lease]))
    const rows = await tx.each(
      this.#find,
      [...distinct.values()].map(({ instanceId, owner, epoch }) => ({ instance_id: instanceId, owner, epoch })),
    )
    return new Set(rows.map(row => leaseKey({ instanceId: row.instance_id, owner: row.owner!, epoch: row.epoch })))
  }
}

interface LeaseRow {
  instance_id: string
  owner: string | null
  epoch: number
}

export function leaseKey({ instanceId, owner, epoch }: Lease): string {
  return `${instanceId}/${epoch}/${owner}`
}
