import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { DEFAULT_ENDPOINT, type SigningSecrets } from '../../src/domain/events/endpoint.ts'
import { type InstanceId, newInstanceId, newMessageId } from '../../src/domain/ids.ts'
import type { IncomingMessage } from '../../src/domain/incoming-message.ts'
import type { AttemptRecord, DueDelivery } from '../../src/store/deliveries/deliveries.ts'
import type { NewInstance } from '../../src/store/instances/instances.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import type { NewMessage } from '../../src/store/messages/messages.ts'
import type { Store } from '../../src/store/store.ts'
import type { CreateHarness, StoreHarness } from './harness.ts'

export const URL = 'https://receiver.example/hook'
export const OWNER = 'node-1'
export const PREPARED = { address: '5511999990000@s.whatsapp.net', content: new Uint8Array(50) }

/** One store for all tests of a suite. Each test creates its own instances. */
export function withStore(createHarness: CreateHarness): { harness: StoreHarness; store: Store } {
  const context = {} as { harness: StoreHarness; store: Store }
  beforeAll(async () => {
    context.harness = await createHarness()
    context.store = await context.harness.open()
  })
  afterAll(() => context.harness?.dispose())
  return context
}

export function newInstance(changes: Partial<NewInstance> = {}): NewInstance {
  return {
    id: newInstanceId(),
    name: 'Shop',
    kind: 'whatsapp',
    tokenDigest: randomBytes(32),
    webhookSecret: `whsec_${randomBytes(32).toString('base64')}`,
    goal: 'idle',
    ...changes,
  }
}

/** The secrets of the default endpoint. */
export async function findSecrets(store: Store, id: InstanceId, now: number): Promise<SigningSecrets | null> {
  return (await store.endpoints.findPosting(id, DEFAULT_ENDPOINT, now))?.secrets ?? null
}

/** The digest of a token in hexadecimal. */
export function hex(digest: Uint8Array): string {
  return Buffer.from(digest).toString('hex')
}

/** A connected instance that `OWNER` owns. */
export async function createConnected(store: Store, options: { url?: string | null } = {}): Promise<Lease> {
  const lease = await createOwned(store)
  await store.connections.record(lease, { state: 'connected', reason: 'Connected.' }, Date.now())
  const { url = URL } = options
  if (url !== null) await store.instances.setWebhookUrl(lease.instanceId, url)
  return lease
}

export async function createOwned(store: Store, changes: Partial<NewInstance> = {}): Promise<Lease> {
  const { id } = await store.instances.create(newInstance(changes), Date.now())
  return take(store, id)
}

/** Acquires the lease of one instance, and of other free instances on the way. */
export async function take(store: Store, id: InstanceId, owner = OWNER): Promise<Lease> {
  // As a node does, or it would count as one of the previous version.
  await store.leases.attend(owner)
  const leases = [...(await store.leases.acquire(owner, 1_000)), ...(await store.leases.renew(owner))]
  const lease = leases.find(({ instanceId }) => instanceId === id)
  if (lease === undefined) throw new Error(`${owner} got no lease on ${id}.`)
  return lease
}

export function newMessage(instanceId: InstanceId, changes: Partial<NewMessage> = {}): NewMessage {
  return {
    id: newMessageId(Date.now()),
    instanceId,
    to: '5511999990000',
    text: 'Good morning',
    whatsappId: randomBytes(10).toString('hex').toUpperCase(),
    ...changes,
  }
}

export async function accept(store: Store, instanceId: InstanceId, changes: Partial<NewMessage> = {}) {
  const message = newMessage(instanceId, changes)
  const outcome = await store.messages.accept(message, Date.now())
  if (outcome.kind !== 'accepted') throw new Error(`The message was not accepted: ${outcome.kind}.`)
  return message
}

/** A prepared message, which can be found by its WhatsApp ID. */
export async function acceptPrepared(store: Store, lease: Lease, changes: Partial<NewMessage> = {}) {
  const message = await accept(store, lease.instanceId, changes)
  await store.messages.recordPrepared(lease, message.id, PREPARED)
  return message
}

/** The same digest as the API's, over `to` and `text`. */
export function idempotency(key: string, body = 'the body') {
  return { key, digest: createHash('sha256').update(body).digest() }
}

export function incoming(changes: Partial<IncomingMessage> = {}): IncomingMessage {
  const { from = '5511988880000', group, addressing } = changes
  return {
    id: randomBytes(8).toString('hex'),
    from,
    chat: group ?? (addressing === 'lid' ? `${from}@lid` : from),
    lid: null,
    username: null,
    type: 'text',
    text: 'Hi',
    sentAt: 1_000,
    ...changes,
  }
}

export function attempt(delivery: DueDelivery, changes: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    attemptNumber: delivery.attemptNumber,
    requested: delivery.requested !== null,
    url: delivery.url,
    startedAt: 1_700_000_000_000,
    durationMs: 12,
    status: 200,
    error: null,
    responseExcerpt: 'ok',
    ...changes,
  }
}

/** The deliveries that may start now. */
export async function listReady(store: Store, instanceId: InstanceId): Promise<DueDelivery[]> {
  const first = await store.deliveries.listFirst(instanceId, 0, 100)
  const retries = await store.deliveries.listRetries(instanceId, 100)
  return [...first, ...retries]
}

/** Delivers all pending deliveries. @returns the kinds of the events in the order of delivery */
export async function deliverAll(store: Store, lease: Lease): Promise<string[]> {
  const kinds: string[] = []
  for (;;) {
    const [delivery] = await listReady(store, lease.instanceId)
    if (delivery === undefined) return kinds
    await store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'delivered' })
    kinds.push(delivery.kind)
  }
}

export function bodyOf(delivery: { body: Uint8Array | string }): {
  event: string
  instanceId: string
  timestamp: string
  data: Record<string, unknown>
} {
  const { body } = delivery
  return JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString())
}

/** Collects the hints of one instance. */
export function watchHints(store: Store, instanceId: InstanceId): string[] {
  const seen: string[] = []
  for (const topic of ['queued', 'deliveries', 'webhook', 'goal', 'connection'] as const) {
    store.hints.on(topic, id => {
      if (id === instanceId) seen.push(topic)
    })
  }
  return seen
}
