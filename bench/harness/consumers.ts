import { newWebhookSecret } from '../../src/api/admin/secrets.ts'
import { incomingBody } from '../../src/domain/events/event.ts'
import { type EndpointId, type InstanceId, newEndpointId, newInstanceId, newMessageId } from '../../src/domain/ids.ts'
import type { IncomingMessage } from '../../src/domain/incoming-message.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import type { Store } from '../../src/store/store.ts'

/** Concurrent writes while a backlog is recorded. */
const AT_ONCE = 500
const MANY_INSTANCES = 2_000
const DIGEST_BYTES = 32

/** An instance without a number, whose webhook gets the recorded events. */
export interface Consumer {
  instanceId: InstanceId
  secret: string
}

/** Creates an instance with a webhook directly in the store, while no service runs on it. */
export async function createConsumer(store: Store, url: string): Promise<Consumer> {
  const instanceId = newInstanceId()
  const secret = newWebhookSecret()
  const tokenDigest = crypto.getRandomValues(new Uint8Array(DIGEST_BYTES))
  await store.instances.create(
    { id: instanceId, name: 'bench', kind: 'whatsapp', tokenDigest, webhookSecret: secret, goal: 'idle' },
    Date.now(),
  )
  await store.instances.setWebhookUrl(instanceId, url)
  return { instanceId, secret }
}

/** Further endpoints of an instance, which get every event. Only while no program owns the instance. */
export async function addEndpoints(
  store: Store,
  instanceId: InstanceId,
  urls: readonly string[],
): Promise<EndpointId[]> {
  const ids: EndpointId[] = []
  for (const url of urls) {
    const id = newEndpointId()
    const settings = { url, secret: newWebhookSecret(), events: ['*'], active: true, description: null }
    const { kind } = await store.endpoints.create({ instanceId, id, ...settings }, Date.now())
    if (kind !== 'created') throw new Error(`An endpoint was refused: ${kind}.`)
    ids.push(id)
  }
  return ids
}

/** Records `count` incoming messages for each consumer, in turn; returns bodies like those that are now pending. */
export async function recordBacklog(store: Store, consumers: readonly Consumer[], count: number): Promise<string[]> {
  const leases = await acquireAll(store)
  const bodies: string[] = []
  let recording: Promise<unknown>[] = []
  const now = Date.now()
  for (let index = 0; index < count; index += 1) {
    for (const { instanceId } of consumers) {
      const message = incomingMessage(`${now}-${index}`, now)
      bodies.push(incomingBody(instanceId, newMessageId(now), message))
      recording.push(store.events.storeIncoming(leases.get(instanceId)!, message, now))
      if (recording.length < AT_ONCE) continue
      await Promise.all(recording)
      recording = []
    }
  }
  await Promise.all(recording)
  await Promise.all([...leases.values()].map(lease => store.leases.release(lease)))
  return bodies
}

/** Acquires all leases. @returns the leases, by instance */
export async function acquireAll(store: Store): Promise<Map<InstanceId, Lease>> {
  const leases = await store.leases.acquire('bench', MANY_INSTANCES)
  return new Map(leases.map(lease => [lease.instanceId, lease]))
}

export function incomingMessage(id: string, sentAt: number): IncomingMessage {
  return {
    id,
    from: '5511987650001',
    type: 'text',
    text: 'Is my order 4711 on its way already? 🚚',
    name: 'Ana',
    chat: '5511987650001',
    lid: null,
    username: null,
    sentAt,
  }
}
