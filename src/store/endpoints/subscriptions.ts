import { DEFAULT_ENDPOINT, DEFAULT_EVENTS } from '../../domain/events/endpoint.ts'
import type { EndpointId, InstanceId } from '../../domain/ids.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Statements } from '../engine/statement.ts'

/** Where an instance's next events go. */
export interface Subscription {
  id: EndpointId
  url: string
  events: readonly string[]
}

/** Reads the endpoints of instances in a transaction. The instances and the endpoints are locked until its commit. */
export class Subscriptions {
  readonly #findDefault
  readonly #findOthers

  constructor(statements: Statements) {
    this.#findDefault = statements.find('instances', { id: 'text' }, ['id', 'webhook_url', 'webhook_events'], {
      lock: 'no key update',
    })
    this.#findOthers = statements.find(
      'endpoints',
      { instance_id: 'text' },
      ['instance_id', 'id', 'url', 'events', 'deleted_at'],
      { lock: 'share' },
    )
  }

  async find(tx: Transaction, instances: Iterable<InstanceId>): Promise<Map<InstanceId, Subscription[]>> {
    const ids = [...instances]
    const found = new Map<InstanceId, Subscription[]>()
    if (ids.length === 0) return found
    // In one round trip. The second statement sees what was committed while the first one waited.
    const [defaults, others] = await Promise.all([
      tx.each(
        this.#findDefault,
        ids.map(id => ({ id })),
      ),
      tx.each(
        this.#findOthers,
        ids.map(instance_id => ({ instance_id })),
      ),
    ])
    for (const { id, webhook_url: url, webhook_events } of defaults)
      found.set(id, url === null ? [] : [{ id: DEFAULT_ENDPOINT, url, events: eventsOf(webhook_events) }])
    for (const { instance_id, id, url, events, deleted_at } of others)
      if (deleted_at === null) found.get(instance_id)?.push({ id, url, events: eventsOf(events) })
    return found
  }
}

/** @param stored null: the kinds of the contract */
export function eventsOf(stored: string | null): readonly string[] {
  return stored === null ? DEFAULT_EVENTS : JSON.parse(stored)
}
