import type { InstanceId } from '../../domain/ids.ts'
import { parseRecipient } from '../../domain/recipient.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'

/** Records an instance's contacts in the same commit as the message that makes them contacts. */
export class Contacts {
  readonly #insert

  constructor(statements: Statements) {
    this.#insert = statements.insert(
      'contacts',
      { instance_id: 'text', number: 'text' },
      { finish: query => query.onConflict(oc => oc.doNothing()) },
    )
  }

  /** @param talks recipients or senders in the API's notation; groups are ignored */
  note(tx: Transaction, talks: readonly { instanceId: InstanceId; with: string }[]): void {
    const rows = new Map<string, { instance_id: InstanceId; number: string }>()
    for (const { instanceId, with: other } of talks) {
      const recipient = parseRecipient(other)
      if (recipient?.kind === 'number') {
        rows.set(`${instanceId}/${recipient.number}`, { instance_id: instanceId, number: recipient.number })
      }
    }
    if (rows.size > 0) tx.post(this.#insert, [...rows.values()])
  }
}
