import { setImmediate } from 'node:timers/promises'
import type { InstanceId } from '../../domain/ids.ts'
import { credentialPlace } from '../encryption/sealing.ts'
import type { Core } from '../engine/core.ts'
import { eraseSome } from '../engine/erase-some.ts'
import { fenced, fencedOneByOne, type Operation } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import type { Credentials } from './credentials.ts'

type Change = Parameters<Credentials['set']>[1][number]

interface SetInput {
  lease: Lease
  changes: { type: string; id: string; sealed: Uint8Array | null }[]
}

/** What is erased with the credentials, in this order, and the key columns. */
const CLEARED = {
  credentials: ['instance_id', 'type', 'id'],
  contacts: ['instance_id', 'number'],
  groups: ['instance_id', 'id'],
  directory_fills: ['instance_id'],
} as const

type ClearedTable = keyof typeof CLEARED

export class StoredCredentials implements Credentials {
  readonly #core: Core
  readonly #get
  readonly #set
  readonly #erase

  constructor(core: Core) {
    const { statements } = core
    this.#core = core
    this.#get = statements.find('credentials', { instance_id: 'text', type: 'text', id: 'text' }, ['id', 'value'])
    this.#set = setOperation(core)
    this.#erase = fencedOneByOne(
      'credentials.clear',
      (tx, { lease: { instanceId }, table }: { lease: Lease; table: ClearedTable }) =>
        eraseSome(tx, statements, instanceId, table, CLEARED[table]),
    )
  }

  async get(instanceId: InstanceId, type: string, ids: readonly string[]): Promise<Map<string, Uint8Array>> {
    const rows = await this.#core.reader.each(
      this.#get,
      [...new Set(ids)].map(id => ({ instance_id: instanceId, type, id })),
    )
    const open = (id: string, value: Uint8Array) =>
      this.#core.sealing.open(instanceId, credentialPlace(instanceId, type, id), value)
    return new Map(rows.map(({ id, value }) => [id, open(id, value)]))
  }

  async set(lease: Lease, changes: readonly Change[]): Promise<void> {
    if (changes.length === 0) return
    const { instanceId } = lease
    const sealed: SetInput['changes'] = []
    for (const { type, id, value } of changes) {
      const place = credentialPlace(instanceId, type, id)
      sealed.push({ type, id, sealed: value && this.#core.sealing.seal(instanceId, place, value) })
    }
    await this.#core.write(this.#set, { lease, changes: sealed })
  }

  async clear(lease: Lease): Promise<void> {
    for (const table of Object.keys(CLEARED) as ClearedTable[]) {
      // On SQLite, deletions block the event loop, so other calls run in between.
      while ((await this.#core.write(this.#erase, { lease, table })) === 'more') await setImmediate()
    }
  }
}

function setOperation({ statements }: Core): Operation<SetInput, void> {
  const put = statements.insert(
    'credentials',
    { instance_id: 'text', type: 'text', id: 'text', value: 'blob' },
    { replace: ['instance_id', 'type', 'id'] },
  )
  const remove = statements.remove('credentials', { instance_id: 'text', type: 'text', id: 'text' })
  return {
    name: 'credentials.set',
    ...fenced,
    isIndependent: true,
    async run(tx, inputs) {
      // The last of several changes to one row wins.
      const rows = new Map<string, { instance_id: string; type: string; id: string; value: Uint8Array | null }>()
      for (const { lease, changes } of inputs) {
        for (const { type, id, sealed } of changes) {
          const instance_id = lease.instanceId
          rows.set(`${instance_id}/${type}/${id}`, { instance_id, type, id, value: sealed })
        }
      }
      const written: { instance_id: string; type: string; id: string; value: Uint8Array }[] = []
      const removed: { instance_id: string; type: string; id: string }[] = []
      for (const row of rows.values()) {
        if (row.value === null) removed.push(row)
        else written.push({ ...row, value: row.value })
      }
      if (written.length > 0) tx.post(put, written)
      if (removed.length > 0) tx.post(remove, removed)
      return []
    },
  }
}
