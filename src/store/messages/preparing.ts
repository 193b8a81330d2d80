import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { fenced, type Operation } from '../engine/operation.ts'
import type { Lease } from '../leases/leases.ts'
import type { PreparedMessage } from './messages.ts'

interface PrepareInput {
  lease: Lease
  id: MessageId
  prepared: PreparedMessage
}

/** The outcome is null if the message has failed. */
export function prepareOperation({ statements }: Core): Operation<PrepareInput, PreparedMessage | null> {
  // Address and content are set together, so the first call determines both.
  const fix = statements.rows({ instance_id: 'text', id: 'text', address: 'text', content: 'blob' }, db =>
    db
      .updateTable('messages')
      .from('input')
      .set(eb => ({
        address: eb.fn.coalesce('messages.address', 'input.address'),
        content: eb.fn.coalesce('messages.content', 'input.content'),
      }))
      .whereRef('messages.instance_id', '=', 'input.instance_id')
      .whereRef('messages.id', '=', 'input.id')
      // Not a condition on `state`: with it, PostgreSQL would read the index of all queued messages.
      .where('messages.failed_at', 'is', null)
      .returning(['messages.instance_id', 'messages.id', 'messages.address', 'messages.content']),
  )
  const find = statements.find('messages', { instance_id: 'text', id: 'text' }, ['id'])
  const checkExistence = async (tx: Transaction, rows: readonly { instance_id: InstanceId; id: MessageId }[]) => {
    const found = new Set((await tx.each(find, rows)).map(({ id }) => id))
    const absent = rows.find(({ id }) => !found.has(id))
    if (absent) throw new Error(`There is no message ${absent.id} to prepare.`)
  }
  return {
    name: 'messages.prepare',
    ...fenced,
    isIndependent: true,
    keys: ({ id }) => [id],
    async run(tx, inputs) {
      const rows: { instance_id: InstanceId; id: MessageId; address: string; content: Uint8Array }[] = []
      for (const { lease, id, prepared } of inputs) rows.push({ instance_id: lease.instanceId, id, ...prepared })
      const stored = new Map<string, PreparedMessage>()
      for (const { instance_id, id, address, content } of await tx.each(fix, rows)) {
        stored.set(`${instance_id}/${id}`, { address: address!, content: content! })
      }
      if (stored.size < rows.length) await checkExistence(tx, rows)
      return inputs.map(({ lease, id }) => stored.get(`${lease.instanceId}/${id}`) ?? null)
    },
  }
}
