import type { Lease } from '../leases/leases.ts'
import type { Transaction } from './backend.ts'
import type { RowsStatement, Statements } from './statement.ts'

/** Finds the leases that are still held, and locks them until the transaction ends. */
export class Fence {
  readonly #find: RowsStatement<{ instance_id: string; owner: string; epoch: number }, LeaseRow>

  constructor(statements: Statements) {
    const columns = { instance_id: 'text', owner: 'text', epoch: 'integer' } as const
    // A renewal is not blocked by this lock, because it changes no key. A takeover is.
    this.#find = statements.find('leases', columns, ['instance_id', 'owner', 'epoch'], { lock: 'key share' })
  }

  async held(tx: Transaction, leases: readonly Lease[]): Promise<Set<string>> {
    if (leases.length === 0) return new Set()
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
