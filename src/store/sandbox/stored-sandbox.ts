import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { fenced, type Operation } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import type { SandboxStorage } from './sandbox-storage.ts'

type Change = Parameters<SandboxStorage['write']>[1][number]

interface WriteInput {
  lease: Lease
  changes: readonly Change[]
}

export class StoredSandbox implements SandboxStorage {
  readonly #core: Core
  readonly #write: Operation<WriteInput, void>

  constructor(core: Core) {
    this.#core = core
    this.#write = writeOperation(core)
  }

  async read(instanceId: InstanceId): Promise<ReadonlyMap<string, Uint8Array>> {
    const { db } = this.#core.statements
    const rows = await this.#core.reader.query(
      db.selectFrom('sandbox_records').select(['key', 'value']).where('instance_id', '=', instanceId),
    )
    return new Map(rows.map(({ key, value }) => [key, value]))
  }

  async write(lease: Lease, changes: readonly Change[]): Promise<void> {
    if (changes.length > 0) await this.#core.write(this.#write, { lease, changes })
  }
}

function writeOperation({ statements }: Core): Operation<WriteInput, void> {
  const put = statements.insert(
    'sandbox_records',
    { instance_id: 'text', key: 'text', value: 'blob' },
    { replace: ['instance_id', 'key'] },
  )
  const remove = statements.remove('sandbox_records', { instance_id: 'text', key: 'text' })
  return {
    name: 'sandbox.write',
    ...fenced,
    async run(tx, inputs) {
      // The last of several changes to one row wins.
      const rows = new Map<string, { instance_id: string; key: string; value: Uint8Array | null }>()
      for (const { lease, changes } of inputs) {
        const { instanceId } = lease
        for (const { key, value } of changes) rows.set(`${instanceId}/${key}`, { instance_id: instanceId, key, value })
      }
      const written: { instance_id: string; key: string; value: Uint8Array }[] = []
      const removed: { instance_id: string; key: string }[] = []
      for (const row of rows.values()) {
        if (row.value === null) removed.push(row)
        else written.push({ ...row, value: row.value })
      }
      if (written.length > 0) await tx.each(put, written)
      if (removed.length > 0) await tx.each(remove, removed)
      return []
    },
  }
}
