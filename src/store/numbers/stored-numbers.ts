import type { InstanceId } from '../../domain/ids.ts'
import type { PhoneNumber } from '../../domain/recipient.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import type { LookedUpNumber, Numbers } from './numbers.ts'

const FOUND_MS = 7 * 24 * 60 * 60_000
const NOT_FOUND_MS = 60 * 60_000

export class StoredNumbers implements Numbers {
  readonly #core: Core
  readonly #find
  readonly #record
  readonly #findContact

  constructor(core: Core) {
    const { db } = core.statements
    this.#core = core
    this.#find = core.statements.one((p: { instanceId: InstanceId; number: PhoneNumber; now: number }) =>
      db
        .selectFrom('numbers')
        .select(['address', 'expires_at'])
        .where('instance_id', '=', p.instanceId)
        .where('number', '=', p.number)
        .where('expires_at', '>', p.now),
    )
    this.#findContact = core.statements.find('contacts', { instance_id: 'text', number: 'text' }, ['number'])
    const put = core.statements.insert(
      'numbers',
      { instance_id: 'text', number: 'text', address: 'text?', expires_at: 'integer' },
      { replace: ['instance_id', 'number'] },
    )
    this.#record = fencedOneByOne(
      'numbers.record',
      async (tx, { lease, ...row }: { lease: Lease; number: string; address: string | null; expires_at: number }) => {
        await tx.each(put, [{ ...row, instance_id: lease.instanceId }])
      },
    )
  }

  async find(instanceId: InstanceId, number: PhoneNumber, now: number): Promise<LookedUpNumber | null> {
    const [row] = await this.#core.reader.run(this.#find, { instanceId, number, now })
    return row ? { address: row.address, expiresAt: row.expires_at } : null
  }

  async isContact(instanceId: InstanceId, numbers: readonly PhoneNumber[]): Promise<boolean> {
    const contacts = numbers.map(number => ({ instance_id: instanceId, number }))
    return (await this.#core.reader.each(this.#findContact, contacts)).length > 0
  }

  async record(lease: Lease, number: PhoneNumber, address: string | null, now: number): Promise<void> {
    const expires_at = now + (address === null ? NOT_FOUND_MS : FOUND_MS)
    await this.#core.write(this.#record, { lease, number, address, expires_at })
  }
}
