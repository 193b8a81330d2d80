import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { HINT_TOPICS, type HintTopic } from '../../src/store/hints.ts'
import type { Store } from '../../src/store/store.ts'
import { onThisMachine } from '../deadlines.ts'
import { until } from '../until.ts'
import { accept, createConnected, incoming, newInstance } from './fixture.ts'
import { createPostgresHarness, type StoreHarness } from './harness.ts'

const SOON_MS = 2_000

describe('hints between nodes', () => {
  let harness: StoreHarness
  let owner: Store
  let other: Store
  let heard: { topic: HintTopic; instanceId: string; origin: string; about: string | undefined }[]

  beforeEach(async () => {
    harness = await createPostgresHarness(inject('postgresUrl'))
    owner = await harness.open()
    other = await harness.open()
    heard = []
    for (const topic of HINT_TOPICS) {
      owner.hints.on(topic, (instanceId, origin, about) => heard.push({ topic, instanceId, origin, about }))
    }
  })
  afterEach(() => harness.dispose())

  const fromElsewhere = (topic: HintTopic, instanceId: string) =>
    until(
      `a hint of ${topic}`,
      () => heard.find(hint => hint.topic === topic && hint.instanceId === instanceId && hint.origin === 'elsewhere'),
      onThisMachine(SOON_MS),
    )

  test('a commit of another node gives a hint under its topic', async () => {
    const { instanceId } = await createConnected(owner)
    await accept(other, instanceId)
    await fromElsewhere('queued', instanceId)
    await fromElsewhere('log', instanceId)
    await other.connections.requestConnect(instanceId, null)
    await fromElsewhere('goal', instanceId)
    await other.instances.setWebhookUrl(instanceId, 'https://example.com/')
    await fromElsewhere('webhook', instanceId)
    await other.instances.rename(instanceId, 'New')
    await fromElsewhere('connection', instanceId)
    const made = newInstance()
    await other.instances.create(made, 0)
    await fromElsewhere('free', made.id)
  })

  test('a request to show typing arrives with its chat and seconds', async () => {
    const { instanceId } = await createConnected(owner)
    other.conversations.requestTyping(instanceId, '5511987654321', 5)
    other.conversations.requestTyping(instanceId, '120363000000000777@g.us', 60)
    expect((await fromElsewhere('typing', instanceId)).about).toBe('5 5511987654321')
    await until('the second request', () => heard.some(({ about }) => about === '60 120363000000000777@g.us'))
  })

  test('more hints than fit into one notification arrive completely', async () => {
    const ids = await Promise.all(Array.from({ length: 600 }, () => other.instances.create(newInstance(), 0)))
    await Promise.all(ids.map(({ id }) => fromElsewhere('goal', id)))
  })

  test('a node receives its own hints once, and only the owner receives hints for the owner', async () => {
    const lease = await createConnected(owner)
    let elsewhere = 0
    other.hints.on('deliveries', () => {
      elsewhere += 1
    })
    owner.hints.on('deliveries', () => undefined, lease.instanceId)
    heard.length = 0
    await owner.events.storeIncoming(lease, incoming(), 0)
    // This hint is sent last. When it has arrived, the others would have arrived as well.
    const { promise: received, resolve } = Promise.withResolvers<void>()
    other.hints.on('webhook', () => resolve())
    await owner.instances.setWebhookUrl(lease.instanceId, null)
    await received
    expect(elsewhere).toBe(0)
    expect(heard.filter(({ topic }) => topic === 'deliveries')).toEqual([
      { topic: 'deliveries', instanceId: lease.instanceId, origin: 'here' },
    ])
  })

  test('a lost connection is replaced; only hints are lost until then', async () => {
    const { instanceId } = await createConnected(owner)
    await harness.execute(`select count(pg_terminate_backend(pid)) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`)
    await until('hints to be heard again', async () => {
      await accept(other, instanceId).catch(() => undefined)
      return heard.some(({ origin }) => origin === 'elsewhere')
    })
  })

  test('foreign notifications on the channel are ignored', async () => {
    for (const payload of ['', 'x', 'null', '[]', '{"queued":1}', '{"queued":[1]}', '{"nothing":["a"]}']) {
      await harness.execute(`select pg_notify('pombal_hints', '${payload}')`)
    }
    await harness.execute(`select pg_notify('pombal_hints', '{"goal":["inst_a"]}')`)
    await fromElsewhere('goal', 'inst_a')
    expect(heard).toHaveLength(1)
  })
})
