import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { DEFAULT_ENDPOINT } from '../../../../src/domain/events/endpoint.ts'
import type { NewSession } from '../../../../src/store/sessions/sessions.ts'
import { LATENCY_BOUNDS_MS, MAX_COUNTED } from '../../../../src/store/statistics/statistics.ts'
import { acceptPrepared, attempt, createConnected, incoming, newInstance, URL, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const HOUR_MS = 60 * 60_000

/** The panel's sessions, its password and the statistics on its pages. */
export function panelContract(createHarness: CreateHarness): void {
  describe('sessions', () => {
    const context = withStore(createHarness)
    const newSession = (changes: Partial<NewSession> = {}): NewSession => ({
      accountId: null,
      passwordHash: null,
      id: `ses_${randomBytes(8).toString('hex')}`,
      tokenDigest: randomBytes(32),
      createdAt: 1_000,
      expiresAt: 2_000,
      userAgent: 'Firefox',
      ...changes,
    })

    test('wrong keys are counted in windows that open with the first one', async () => {
      const { harness, store } = context
      const { sessions } = store
      const [a, b] = [
        { key: 'a', windowMs: 60_000 },
        { key: 'b', windowMs: 3_600_000 },
      ]
      for (const count of [1, 2, 3]) expect(await sessions.countWrongKey([a])).toMatchObject([{ count }])
      const found = await sessions.countWrongKey([b, a])
      expect(found.map(({ count }) => count)).toEqual([1, 4])
      for (const [index, { windowMs }] of [b, a].entries()) {
        expect(found[index]!.endsInMs).toBeGreaterThan(windowMs - 30_000)
        expect(found[index]!.endsInMs).toBeLessThanOrEqual(windowMs)
      }
      await sessions.uncountWrongKey([a, b])
      await sessions.uncountWrongKey([b])
      expect((await sessions.countWrongKey([b, a])).map(({ count }) => count)).toEqual([1, 4])
      await harness.execute("update wrong_keys set ends_at = 1 where address = 'a'")
      expect(await sessions.countWrongKey([a])).toMatchObject([{ count: 1 }])
      expect(await harness.execute('select 1 from wrong_keys')).toHaveLength(2)
    })

    test('a window of wrong keys that was opened before the clock was set back does not last longer than others', async () => {
      const { harness, store } = context
      const windows = [{ key: 'early', windowMs: 60_000 }]
      for (const count of [1, 2]) expect(await store.sessions.countWrongKey(windows)).toMatchObject([{ count }])
      await harness.execute("update wrong_keys set ends_at = ends_at + 7200000 where address = 'early'")
      const [found] = await store.sessions.countWrongKey(windows)
      expect(found!.count).toBe(1)
      expect(found!.endsInMs).toBeLessThanOrEqual(60_000)
    })

    test('a right key opens no window', async () => {
      const { harness, store } = context
      const windows = [{ key: 'right', windowMs: 60_000 }]
      await store.sessions.countWrongKey(windows)
      await store.sessions.uncountWrongKey(windows)
      expect(await harness.execute("select 1 from wrong_keys where address = 'right'")).toEqual([])
    })

    test('are found by their token until they expire or are ended', async () => {
      const { sessions } = context.store
      const session = newSession()
      const { tokenDigest, id, createdAt, expiresAt, userAgent } = session
      await sessions.create(session)
      expect(await sessions.find(tokenDigest, 1_999)).toEqual({ id, createdAt, expiresAt, userAgent, account: null })
      expect(await sessions.find(tokenDigest, 2_000)).toBeNull()
      expect(await sessions.find(randomBytes(32), 1_500)).toBeNull()
      await sessions.end(session.id, null)
      expect(await sessions.find(tokenDigest, 1_500)).toBeNull()
      await sessions.end(session.id, null)
    })

    test('a new password ends all sessions except the one that set it', async () => {
      const { sessions } = context.store
      const [kept, other] = [newSession(), newSession({ userAgent: null, createdAt: 1_001 })]
      for (const session of [kept, other]) await sessions.create(session)
      expect((await sessions.list(null, 1_500)).map(({ id }) => id)).toEqual([other.id, kept.id])
      expect(await sessions.findPasswordHash()).toBeNull()
      await sessions.setPasswordHash('scrypt$a', kept.id)
      expect(await sessions.findPasswordHash()).toBe('scrypt$a')
      expect((await sessions.list(null, 1_500)).map(({ id }) => id)).toEqual([kept.id])
      await sessions.setPasswordHash(null, null)
      expect(await sessions.findPasswordHash()).toBeNull()
      expect(await sessions.list(null, 1_500)).toEqual([])
    })

    test('a session that has ended cannot set the password, with an account or without', async () => {
      const { sessions, accounts } = context.store
      const digest = randomBytes(32)
      const account = { id: 'acc_ended', name: 'Ended', role: 'owner' as const, instances: null }
      await accounts.create(account, { digest, lastsMs: HOUR_MS, invitedBy: null }, 0)
      await accounts.accept(digest, 'scrypt$own')
      const own = newSession({ accountId: account.id, passwordHash: 'scrypt$own' })
      for (const [session, setBy] of [[newSession(), null] as const, [own, account.id] as const]) {
        await sessions.create(session)
        expect(await sessions.setPasswordHash('scrypt$set', session.id, setBy)).toBe('changed')
        await sessions.endOthers(setBy, null)
        expect(await sessions.setPasswordHash('scrypt$stolen', session.id, setBy)).toBe('signed_out')
        expect(await sessions.setPasswordHash(null, session.id, setBy)).toBe('signed_out')
        expect(await sessions.findPasswordHash()).toBe('scrypt$set')
        // Both at the same time, in either order.
        await sessions.create(session)
        const [ended, change] = await Promise.all([
          sessions.endOthers(setBy, null),
          sessions.setPasswordHash('scrypt$race', session.id, setBy),
        ])
        expect(ended).toBe(true)
        expect(await sessions.findPasswordHash()).toBe(change === 'changed' ? 'scrypt$race' : 'scrypt$set')
      }
      await sessions.setPasswordHash(null, null)
    })

    test('a new password ends a sign-in with the old one that is still running', async () => {
      const { sessions } = context.store
      const signIn = (passwordHash: string | null) => sessions.create(newSession({ passwordHash }))
      await sessions.setPasswordHash('scrypt$old', null)
      expect(await signIn('scrypt$old')).toBe(true)
      await sessions.setPasswordHash('scrypt$new', null)
      expect([await signIn('scrypt$old'), await signIn('scrypt$new')]).toEqual([false, true])
      await sessions.setPasswordHash(null, null)
      expect([await signIn('scrypt$new'), await signIn(null)]).toEqual([false, true])
      const racing = Array.from({ length: 20 }, (_, count) => `scrypt$${count}`)
      for (const hash of racing) {
        await sessions.setPasswordHash(hash, null)
        await Promise.all([signIn(hash), signIn(hash), sessions.setPasswordHash('scrypt$next', null), signIn(hash)])
        expect(await sessions.list(null, 1_500)).toEqual([])
      }
      await sessions.setPasswordHash(null, null)
    })
  })

  describe('statistics', () => {
    const context = withStore(createHarness)

    test('activity counts the last hour and shows the oldest event with an unfinished delivery', async () => {
      const { store } = context
      const now = Date.now()
      const lease = await createConnected(store)
      const { instanceId } = lease
      const idle = await store.instances.create(newInstance(), now)
      const message = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, message.whatsappId, 'read', now)
      await store.events.storeIncoming(lease, incoming(), now)
      const activity = await store.statistics.activity([instanceId, idle.id], now - HOUR_MS, now - HOUR_MS)
      expect(activity.find(entry => entry.instanceId === instanceId)).toMatchObject({ sent: 1, received: 1 })
      expect(activity.find(entry => entry.instanceId === instanceId)?.oldestUndeliveredAt).toBeGreaterThanOrEqual(now)
      expect(activity.find(entry => entry.instanceId === idle.id)).toMatchObject({
        sent: 0,
        received: 0,
        oldestUndeliveredAt: null,
      })
      const [later] = await store.statistics.activity([instanceId], Date.now() + HOUR_MS, 0)
      expect(later).toMatchObject({ sent: 0, received: 0 })
    })

    test('activity counts the retries and failures of a webhook until the events are delivered', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const made = Date.now()
      const recent = async (givenUpSince = made) => {
        const [activity] = await store.statistics.activity([instanceId], made, givenUpSince)
        return activity!.deliveries
      }
      expect(await recent()).toEqual({ retrying: 0, givenUp: 0, lastDeliveredAt: null, lastGivenUpAt: null })

      for (let count = 0; count < 5; count += 1) await store.events.storeIncoming(lease, incoming(), made)
      const [first, second, third, fourth] = await store.deliveries.listFirst(instanceId, 0, 10)
      const at = (startedAt: number) => ({ startedAt, durationMs: 5 })
      await store.deliveries.recordAttempt(lease, first!, attempt(first!, at(made)), { kind: 'delivered' })
      await store.deliveries.recordAttempt(lease, second!, attempt(second!, at(made + 10)), { kind: 'delivered' })
      await store.deliveries.recordAttempt(lease, third!, attempt(third!, at(made + 20)), { kind: 'exhausted' })
      const retry = { kind: 'retry', dueAt: made + 1_000, failedAt: made } as const
      await store.deliveries.recordAttempt(lease, fourth!, attempt(fourth!, at(made + 30)), retry)
      const mixed = { retrying: 1, givenUp: 1, lastDeliveredAt: made + 15, lastGivenUpAt: made + 25 }
      expect(await recent()).toEqual(mixed)
      expect(await recent(made + HOUR_MS)).toEqual({ ...mixed, givenUp: 0, lastGivenUpAt: null })

      await store.deliveries.redeliver(instanceId, third!.eventId, made)
      const again = (await store.deliveries.listFirst(instanceId, 0, 10)).find(
        ({ eventId }) => eventId === third!.eventId,
      )
      await store.deliveries.recordAttempt(lease, again!, attempt(again!, at(made + 40)), { kind: 'delivered' })
      expect(await recent()).toEqual({ retrying: 1, givenUp: 0, lastDeliveredAt: made + 45, lastGivenUpAt: null })
    })

    test('every event of a period is counted once, by its outcome', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const made = Date.now()
      for (let count = 0; count < 4; count += 1) await store.events.storeIncoming(lease, incoming(), made)
      await store.instances.setWebhookUrl(instanceId, null)
      await store.events.storeIncoming(lease, incoming(), made)
      const due = await store.deliveries.listFirst(instanceId, 0, 10)
      expect(due).toHaveLength(4)
      const [once, never, twice] = due
      const took = { startedAt: made, durationMs: 30 }
      await store.deliveries.recordAttempt(lease, once!, attempt(once!, took), { kind: 'delivered' })
      await store.deliveries.recordAttempt(lease, never!, attempt(never!, took), { kind: 'exhausted' })
      await store.deliveries.recordAttempt(lease, twice!, attempt(twice!, took), {
        kind: 'retry',
        dueAt: made,
        failedAt: 0,
      })
      const second = { ...twice!, attemptNumber: 2 }
      await store.deliveries.recordAttempt(lease, second, attempt(second, took), { kind: 'delivered' })

      const outcomes = await store.statistics.outcomes(instanceId, made, made + 1)
      expect(outcomes).toMatchObject({ first: 1, retried: 1, redelivered: 0, exhausted: 1, waiting: 1, notPosted: 1 })
      const within50Ms = LATENCY_BOUNDS_MS.indexOf(50)
      expect(outcomes.latencies).toHaveLength(LATENCY_BOUNDS_MS.length + 1)
      expect(outcomes.latencies[within50Ms]).toEqual({ count: 2, longestMs: 30 })
      expect(outcomes.latencies.reduce((sum, { count }) => sum + count, 0)).toBe(2)

      await store.instances.setWebhookUrl(instanceId, URL)
      await store.deliveries.redeliver(instanceId, never!.eventId, made)
      const again = (await store.deliveries.listFirst(instanceId, 0, 10)).find(
        ({ eventId }) => eventId === never!.eventId,
      )
      await store.deliveries.recordAttempt(lease, again!, attempt(again!, took), { kind: 'delivered' })
      const after = await store.statistics.outcomes(instanceId, made, made + 1)
      expect(after).toMatchObject({ first: 1, retried: 1, redelivered: 1, exhausted: 0, waiting: 1, notPosted: 1 })
      // A redelivery is not timed, because it comes when a person requests it.
      expect(after.latencies).toEqual(outcomes.latencies)
      const empty = await store.statistics.outcomes(instanceId, made + 1, made + 2)
      expect(empty).toMatchObject({ first: 0, retried: 0, exhausted: 0, waiting: 0, notPosted: 0 })
    })

    test('an event that one endpoint accepted is timed, even if another one refuses it or was not reached yet', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const made = Date.now()
      const { webhookSecret: secret } = newInstance()
      const other = { instanceId, id: 'endpoint_1', url: URL, secret, active: true, description: null }
      await store.endpoints.create({ ...other, events: ['message.*'] }, made)
      for (let count = 0; count < 2; count += 1) await store.events.storeIncoming(lease, incoming(), made)
      const took = { startedAt: made, durationMs: 30 }
      const [refused] = await store.deliveries.listFirst(instanceId, 0, 10)
      await store.deliveries.recordAttempt(lease, refused!, attempt(refused!, took), { kind: 'exhausted' })
      for (const delivery of await store.deliveries.listFirst(instanceId, 0, 10, other.id))
        await store.deliveries.recordAttempt(lease, delivery, attempt(delivery, took), { kind: 'delivered' })
      const outcomes = await store.statistics.outcomes(instanceId, made, made + 1)
      expect(outcomes).toMatchObject({ first: 0, exhausted: 1, waiting: 1 })
      expect(outcomes.latencies[LATENCY_BOUNDS_MS.indexOf(50)]).toEqual({ count: 2, longestMs: 30 })
    })

    test('the events that a redelivery would select can be counted, and so can unfinished redeliveries', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const made = Date.now()
      for (let count = 0; count < 3; count += 1) await store.events.storeIncoming(lease, incoming(), made)
      for (const delivery of await store.deliveries.listFirst(instanceId, 0, 10)) {
        await store.deliveries.recordAttempt(lease, delivery, attempt(delivery), { kind: 'exhausted' })
      }
      expect(await store.statistics.countEnded(instanceId, made, 'exhausted')).toBe(3)
      expect(await store.statistics.countEnded(instanceId, made + 1, 'exhausted')).toBe(0)
      expect(await store.statistics.countEnded(instanceId, made, 'delivered')).toBe(0)
      expect(await store.deliveries.redeliverSince(instanceId, made, 'exhausted', Date.now())).toEqual({
        kind: 'queued',
        count: 3,
      })
      expect(await store.statistics.countEnded(instanceId, made, 'exhausted')).toBe(0)
      expect(await store.statistics.countRedelivering(instanceId)).toBe(3)
      expect(MAX_COUNTED).toBeGreaterThan(3)
    })

    test('events that were never posted are listed, counted and delivered once there is a URL', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const made = Date.now()
      await store.instances.setWebhookUrl(instanceId, null)
      for (let count = 0; count < 3; count += 1) await store.events.storeIncoming(lease, incoming(), made + count)
      await store.instances.setWebhookUrl(instanceId, URL)
      await store.events.storeIncoming(lease, incoming(), made + 3)
      const listed = async (limit: number, cursor?: string) =>
        store.events.list(instanceId, { limit, cursor }, { state: 'not_posted' })
      const first = await listed(2)
      const second = await listed(2, first.nextCursor!)
      expect([...first.data, ...second.data].map(({ createdAt }) => createdAt - made)).toEqual([2, 1, 0])
      expect(second.nextCursor).toBeNull()
      expect(await store.statistics.countNotPosted(instanceId, made)).toBe(3)
      expect(await store.statistics.countNotPosted(instanceId, made + 1)).toBe(2)

      expect(await store.deliveries.redeliverSince(instanceId, made + 1, 'not_posted', Date.now())).toEqual({
        kind: 'queued',
        count: 2,
      })
      expect(await store.statistics.countNotPosted(instanceId, made)).toBe(1)
      expect((await listed(10)).data.map(({ createdAt }) => createdAt - made)).toEqual([0])
      expect(await store.deliveries.redeliverSince(instanceId, made + 1, 'not_posted', Date.now())).toEqual({
        kind: 'queued',
        count: 0,
      })
    })

    test('events that are being retried can be listed separately from those that wait for their first attempt', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      for (let count = 0; count < 2; count += 1) await store.events.storeIncoming(lease, incoming(), Date.now())
      const [failed] = await store.deliveries.listFirst(instanceId, 0, 10)
      const then = { kind: 'retry', dueAt: Date.now() + HOUR_MS, failedAt: Date.now() } as const
      await store.deliveries.recordAttempt(lease, failed!, attempt(failed!), then)
      const ids = async (state: 'pending' | 'retrying') =>
        (await store.events.list(instanceId, { limit: 10 }, { state })).data.map(({ id }) => id)
      expect(await ids('pending')).toHaveLength(2)
      expect(await ids('retrying')).toEqual([failed!.eventId])
    })

    test('messages are found by part of the number, as people write it, or of the text', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const bread = await acceptPrepared(store, lease, { to: '5511987654321', text: 'Pão de Açúcar, 100%' })
      const other = await acceptPrepared(store, lease, { to: '351912345678', text: 'Bom dia' })
      const found = async (search: string) =>
        (await store.messages.list(instanceId, { limit: 10 }, { search })).data.map(({ id }) => id)
      for (const search of ['pao de acucar', 'AÇÚCAR', '100%', '+55 11', '98765-4321']) {
        expect(await found(search), search).toEqual([bread.id])
      }
      for (const search of ['bom', '3519']) expect(await found(search), search).toEqual([other.id])
      for (const search of ['1%0', '_', 'boa']) expect(await found(search), search).toEqual([])
    })

    test('activity counts failed and queued messages separately from those that WhatsApp has', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      const now = Date.now()
      const sent = await acceptPrepared(store, lease)
      await store.messages.recordProgress(lease, sent.whatsappId, 'sent', now)
      for (let count = 0; count < 2; count += 1) {
        const message = await acceptPrepared(store, lease)
        const failure = { code: 'recipient_not_on_whatsapp', message: 'Not on WhatsApp.' } as const
        await store.messages.recordFailure(lease, message, failure, now)
      }
      await acceptPrepared(store, lease)
      const [activity] = await store.statistics.activity([instanceId], now - HOUR_MS, now)
      expect(activity).toMatchObject({ sent: 1, failed: 2, queued: 1 })
    })
  })

  describe('the details of an instance', () => {
    const context = withStore(createHarness)

    test('received messages are listed newest first, with their bodies', async () => {
      const { store } = context
      const lease = await createConnected(store)
      for (const [index, text] of ['one', 'two', 'three'].entries()) {
        await store.events.storeIncoming(lease, incoming({ id: text, text }), 1_000 + index)
      }
      const received = await store.events.listReceived(lease.instanceId, 2)
      expect(received.map(({ body }) => JSON.parse(body).data.text)).toEqual(['three', 'two'])
      expect(received[0]?.createdAt).toBe(1_002)
    })

    test('the time of the last change of the secret is known', async () => {
      const { store } = context
      const { id } = await store.instances.create(newInstance(), 1_000)
      expect(await store.endpoints.findSecretChangedAt(id, DEFAULT_ENDPOINT)).toBeNull()
      await store.endpoints.replaceSecret(id, DEFAULT_ENDPOINT, newInstance().webhookSecret, 5_000)
      expect(await store.endpoints.findSecretChangedAt(id, DEFAULT_ENDPOINT)).toBe(5_000)
    })

    test('every change of a log gives a log hint', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { instanceId } = lease
      let hints = 0
      const stop = store.hints.on('log', changed => {
        if (changed === instanceId) hints += 1
      })
      const hinted = async (change: () => Promise<unknown>) => {
        const before = hints
        await change()
        return hints > before
      }
      let message = { whatsappId: '' }
      expect(await hinted(async () => (message = await acceptPrepared(store, lease)))).toBe(true)
      expect(await hinted(() => store.messages.recordProgress(lease, message.whatsappId, 'sent', Date.now()))).toBe(
        true,
      )
      expect(await hinted(() => store.messages.recordProgress(lease, message.whatsappId, 'sent', Date.now()))).toBe(
        false,
      )
      expect(await hinted(() => store.events.storeIncoming(lease, incoming(), Date.now()))).toBe(true)
      const [due] = await store.deliveries.listFirst(instanceId, 0, 1)
      expect(
        await hinted(() => store.deliveries.recordAttempt(lease, due!, attempt(due!), { kind: 'exhausted' })),
      ).toBe(true)
      expect(await hinted(() => store.deliveries.redeliver(instanceId, due!.eventId, Date.now()))).toBe(true)
      stop()
    })

    test('the cause of a stop is stored with its reason', async () => {
      const { store } = context
      const lease = await createConnected(store)
      await store.connections.record(lease, { state: 'stopped', reason: 'Banned.', cause: 'banned' }, 1)
      expect(await store.connections.find(lease.instanceId)).toMatchObject({ state: 'stopped', cause: 'banned' })
      await store.connections.record(lease, { state: 'connected', reason: 'Connected.', cause: null }, 2)
      expect((await store.connections.find(lease.instanceId))?.cause).toBeNull()
    })
  })
}
