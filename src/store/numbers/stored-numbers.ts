import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { namesOf, type PhoneNumber, parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import { NumberOrders } from './number-orders.ts'
import type { CheckOrder, LookedUpNumber, Numbers } from './numbers.ts'

const FOUND_MS = 7 * 24 * 60 * 60_000
const NOT_FOUND_MS = 60 * 60_000

interface Contact {
  number: string
  last_at: number | null
}

export class StoredNumbers implements Numbers {
  readonly #core: Core
  readonly #orders: NumberOrders
  readonly #find
  readonly #record
  readonly #findContact
  readonly #findNumbersOfLid

  constructor(core: Core) {
    const { db } = core.statements
    this.#core = core
    this.#orders = new NumberOrders(core)
    this.#find = core.statements.one((p: { instanceId: InstanceId; number: PhoneNumber; now: number }) =>
      db
        .selectFrom('numbers')
        .select(['address', 'expires_at'])
        .where('instance_id', '=', p.instanceId)
        .where('number', '=', p.number)
        .where('expires_at', '>', p.now),
    )
    this.#findContact = core.statements.find(
      'contacts',
      { instance_id: 'text', number: 'text' },
      ['number', 'last_at'],
      {
        where: sql`contacts.stranger = 0`,
      },
    )
    // Selects only `number`: for any other column, SQLite would read all contacts of the instance.
    this.#findNumbersOfLid = core.statements.find('contacts', { instance_id: 'text', lid: 'text' }, ['number'], {
      where: sql`contacts.lid is not null`,
    })
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
    if (row === undefined) return null
    const { address, expires_at: expiresAt } = row
    if (address === null) {
      const contacts = await this.#findContacts(instanceId, namesOf(number, undefined))
      if (contacts.some(contact => isSince(expiresAt, contact))) return null
    }
    return { address, expiresAt }
  }

  async findMany(
    instanceId: InstanceId,
    numbers: readonly PhoneNumber[],
    now: number,
  ): Promise<Map<PhoneNumber, LookedUpNumber>> {
    const rows = await this.#core.reader.query(
      this.#core.statements.db
        .selectFrom('numbers')
        .select(['number', 'address', 'expires_at'])
        .where('instance_id', '=', instanceId)
        .where('number', 'in', numbers)
        .where('expires_at', '>', now),
    )
    const namesOfAbsent = rows.flatMap(({ number, address }) => (address === null ? namesOf(number, undefined) : []))
    const contacts = namesOfAbsent.length === 0 ? [] : await this.#findContacts(instanceId, namesOfAbsent)
    const found = new Map<PhoneNumber, LookedUpNumber>()
    for (const { number, address, expires_at: expiresAt } of rows) {
      const own =
        address === null ? contacts.filter(contact => namesOf(number, undefined).includes(contact.number)) : []
      if (!own.some(contact => isSince(expiresAt, contact))) found.set(number, { address, expiresAt })
    }
    return found
  }

  order(instanceId: InstanceId, numbers: readonly PhoneNumber[], perDay: number): Promise<CheckOrder> {
    return this.#orders.order(instanceId, numbers, perDay)
  }

  remind(instanceId: InstanceId): void {
    this.#orders.remind(instanceId)
  }

  listOrders(instanceId: InstanceId): Promise<PhoneNumber[]> {
    return this.#orders.listOpen(instanceId)
  }

  settleOrder(lease: Lease, number: PhoneNumber): Promise<void> {
    return this.#orders.settle(lease, number)
  }

  async isContact(instanceId: InstanceId, names: readonly string[]): Promise<boolean> {
    return (await this.#findContacts(instanceId, names)).length > 0
  }

  async #findContacts(instance_id: InstanceId, names: readonly string[]): Promise<readonly Contact[]> {
    const { reader } = this.#core
    const rows = names.map(number => ({ instance_id, number }))
    const lids = names.flatMap(name => (parseRecipient(name)?.kind === 'lid' ? [{ instance_id, lid: name }] : []))
    if (lids.length > 0)
      for (const { number } of await reader.each(this.#findNumbersOfLid, lids)) rows.push({ instance_id, number })
    return reader.each(this.#findContact, rows)
  }

  async record(lease: Lease, number: PhoneNumber, address: string | null, now: number): Promise<void> {
    const expires_at = now + (address === null ? NOT_FOUND_MS : FOUND_MS)
    await this.#core.write(this.#record, { lease, number, address, expires_at })
  }
}

/** Whether a message was exchanged with the contact after a look-up that did not find the number. */
function isSince(expiresAt: number, { last_at }: Contact): boolean {
  return last_at !== null && last_at > expiresAt - NOT_FOUND_MS
}
