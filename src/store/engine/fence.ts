import type { Lease } from '../leases/leases.ts'
import type { Transaction } from './backend.ts'
import type { Unit } from './operation.ts'
import type { RowsStatement, Statements } from './statement.ts'

/** Finds the leases that are still held, and locks them until the transaction ends. */
export class Fence {
  readonly #find: RowsStatement<{ instance_id: string; owner: string; epoch: number }, LeaseRow>

  constructor(statements: Statements) {
    const columns = { instance_id: 'text', owner: 'text', epoch: 'integer' } as const
    // A renewal changes no key, so this lock does not block it. A takeover locks `for update`, so it skips the lease.
    this.#find = statements.find('leases', columns, ['instance_id', 'owner', 'epoch'], { lock: 'key share' })
  }

  /** @returns the keys of the leases of these units that are still held */
  async held(tx: Transaction, units: readonly Unit[]): Promise<Set<string>> {
    const leases = new Map<string, { instance_id: string; owner: string; epoch: number }>()
    for (const { lease } of units) {
      if (lease) leases.set(leaseKey(lease), { instance_id: lease.instanceId, owner: lease.owner, epoch: lease.epoch })
    }
    const held = new Set<string>()
    if (leases.size === 0) return held
    for (const { instance_id: instanceId, owner, epoch } of await tx.each(this.#find, [...leases.values()])) {
      held.add(leaseKey({ instanceId, owner: owner!, epoch }))
    }
    return held
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
