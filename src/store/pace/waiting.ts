import { sql } from 'kysely'
import { type InstanceId, isCommandId, type MessageId } from '../../domain/ids.ts'
import type { Waiting } from '../../domain/message.ts'
import { parseRecipient } from '../../domain/recipients/recipient.ts'
import { currentStateOf } from '../connections/current-state.ts'
import type { Core } from '../engine/core.ts'
import { IS_QUEUED } from '../engine/schema/messages.ts'
import { chatOf } from '../numbers/contacts.ts'

/** Finds out from the rows why a queued message was not sent yet. */
export class WaitingReader {
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  async find(instanceId: InstanceId, id: MessageId, now: number): Promise<Waiting | null> {
    const row = await this.#findRow(instanceId, id)
    if (row === undefined) return null
    if (row.seq < 0) return { waitingFor: 'schedule', notBefore: row.not_before }
    if (row.state !== 'connected') return { waitingFor: 'connection', notBefore: null }
    if (row.earlier !== null) return { waitingFor: 'order', notBefore: null }
    if (row.address !== null || isCommandId(id)) return null
    const moments = [row.restricted_until, row.opens_at, row.new_recipients_at].map(moment => moment ?? 0)
    const [restricted = 0, opens = 0, renewed = 0] = moments
    const isStranger = Math.max(restricted, renewed) > now && !(await this.#isContact(instanceId, row.recipient))
    if (isStranger && restricted > now) return { waitingFor: 'restriction', notBefore: restricted }
    const paced = Math.max(opens, isStranger ? renewed : 0)
    if (paced > now) return { waitingFor: 'pace', notBefore: paced }
    return row.media_id === null ? null : { waitingFor: 'media', notBefore: null }
  }

  async #findRow(instanceId: InstanceId, id: MessageId) {
    const { reader, statements } = this.#core
    const [row] = await reader.query(
      statements.db
        .selectFrom('messages')
        .innerJoin('connections', 'connections.instance_id', 'messages.instance_id')
        .innerJoin('leases', 'leases.instance_id', 'messages.instance_id')
        .leftJoin('paces', 'paces.instance_id', 'messages.instance_id')
        .select(['messages.seq', 'messages.recipient', 'messages.address', 'messages.not_before', 'messages.media_id'])
        .select(currentStateOf('connections', 'leases', statements.now).as('state'))
        .select(['connections.restricted_until', 'paces.opens_at', 'paces.new_recipients_at'])
        .select(eb =>
          eb
            .selectFrom('messages as earlier')
            .select('earlier.id')
            .where('earlier.instance_id', '=', instanceId)
            .where(sql<boolean>`earlier.state = 'queued'`)
            .where('earlier.seq', '>', 0)
            .whereRef('earlier.seq', '<', 'messages.seq')
            .whereRef('earlier.recipient', '=', 'messages.recipient')
            .limit(1)
            .as('earlier'),
        )
        .where('messages.instance_id', '=', instanceId)
        .where('messages.id', '=', id)
        .where(IS_QUEUED),
    )
    return row
  }

  async #isContact(instanceId: InstanceId, recipient: string): Promise<boolean> {
    if (parseRecipient(recipient)?.kind === 'group') return true
    const { reader, statements } = this.#core
    const [number] = await reader.query(
      statements.db
        .selectFrom('numbers')
        .select('address')
        .where('instance_id', '=', instanceId)
        .where('number', '=', recipient),
    )
    const names = [recipient, ...(number?.address ? [chatOf(number.address)] : [])]
    const found = await reader.query(
      statements.db
        .selectFrom('contacts')
        .select('number')
        .where('instance_id', '=', instanceId)
        .where('number', 'in', names)
        .where('stranger', '=', 0)
        .limit(1),
    )
    return found.length > 0
  }
}
