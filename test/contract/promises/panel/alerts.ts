import { beforeEach, describe, expect, test } from 'vitest'
import { type AlertChanges, DEFAULT_ALERT_DELAYS, type Problem } from '../../../../src/domain/alert.ts'
import type { AfterAttempt } from '../../../../src/domain/events/delivery.ts'
import { DEFAULT_ENDPOINT } from '../../../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../../../src/domain/ids.ts'
import type { NewAlertTarget } from '../../../../src/store/alerts/alerts.ts'
import { MAX_ALERT_TARGETS } from '../../../../src/store/alerts/alerts.ts'
import { InvalidCursor } from '../../../../src/store/errors.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { attempt, createConnected, incoming, URL } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'
import { imported } from '../transfers.ts'

const MINUTE_MS = 60_000
const HOST = 'node-a'
const NTFY: NewAlertTarget = { channel: 'ntfy', name: 'Night shift', address: { url: 'https://ntfy.sh/topic' } }
const NONE: AlertChanges = { noticed: [], began: [], gone: [], returned: [], ended: [] }

function noticed(changes: Partial<Problem> & { beganAt?: number | null } = {}): AlertChanges {
  const problem = {
    rule: 'number_down' as const,
    subject: 'inst_1',
    since: 1,
    detail: 'Cut.',
    beganAt: null,
    ...changes,
  }
  return { ...NONE, noticed: [{ ...problem, since: problem.since ?? 1 }] }
}

export function alertsContract(createHarness: CreateHarness): void {
  describe('alerts', () => {
    let harness: StoreHarness
    let store: Store

    beforeEach(async () => {
      harness = await createHarness()
      store = await harness.open()
      return () => harness.dispose()
    })

    const open = () => store.alerts.listOpen(HOST)
    const listAll = async () => (await store.alerts.list({ limit: 50 })).data
    async function begin(changes: Partial<Problem> = {}): Promise<string> {
      await store.alerts.apply(noticed({ ...changes, beganAt: Date.now() }), Date.now())
      return (await open()).find(({ subject }) => subject === (changes.subject ?? 'inst_1'))!.id
    }

    test('a problem is noticed once, begins, is gone and ends', async () => {
      await store.alerts.apply(noticed(), 10)
      await store.alerts.apply(noticed(), 11)
      const [alert, ...more] = await open()
      expect(more).toEqual([])
      expect(alert).toMatchObject({ rule: 'number_down', subject: 'inst_1', since: 1, beganAt: null, goneSince: null })
      expect(await listAll()).toEqual([])
      const ids = [alert!.id]
      expect(await store.alerts.apply({ ...NONE, began: ids }, 20)).toEqual({ began: 1, ended: 0 })
      expect(await store.alerts.apply({ ...NONE, began: ids }, 21)).toEqual({ began: 0, ended: 0 })
      await store.alerts.apply({ ...NONE, gone: ids }, 30)
      expect((await open())[0]).toMatchObject({ beganAt: 20, goneSince: 30 })
      await store.alerts.apply({ ...NONE, returned: ids }, 31)
      expect((await open())[0]).toMatchObject({ goneSince: null })
      expect(await store.alerts.apply({ ...NONE, ended: ids }, 40)).toEqual({ began: 0, ended: 1 })
      expect(await open()).toEqual([])
      expect(await listAll()).toMatchObject([{ id: ids[0], beganAt: 20, endedAt: 40, instanceName: null }])
      await store.alerts.apply(noticed(), 50)
      expect(await open()).toHaveLength(1)
    })

    test('a problem that is noticed twice at the same time is announced once', async () => {
      await store.alerts.createTarget(NTFY, 0)
      const changes = noticed({ beganAt: 5 } as Partial<Problem>)
      const outcomes = await Promise.all([store.alerts.apply(changes, 5), store.alerts.apply(changes, 5)])
      expect(outcomes.reduce((sum, { began }) => sum + began, 0)).toBe(1)
      expect((await store.alerts.claimNotices())?.notices).toHaveLength(1)
    })

    test('a problem that ends before its delay is over leaves nothing', async () => {
      await store.alerts.apply(noticed(), 10)
      const [alert] = await open()
      expect(await store.alerts.apply({ ...NONE, ended: [alert!.id] }, 20)).toEqual({ began: 0, ended: 0 })
      expect(await open()).toEqual([])
      expect(await listAll()).toEqual([])
    })

    test('alerts are listed page by page, newest first', async () => {
      for (const subject of ['inst_1', 'inst_2', 'inst_3']) await begin({ subject })
      const first = await store.alerts.list({ limit: 2 })
      expect(first.data.map(({ subject }) => subject)).toEqual(['inst_3', 'inst_2'])
      const second = await store.alerts.list({ limit: 2, cursor: first.nextCursor! })
      expect(second).toMatchObject({ data: [{ subject: 'inst_1' }], nextCursor: null })
      await expect(store.alerts.list({ limit: 2, cursor: 'x' })).rejects.toThrow(InvalidCursor)
    })

    test('alerts that have not ended, and those that have, are listed apart', async () => {
      const ended = [await begin({ subject: 'inst_1' }), await begin({ subject: 'inst_3' })]
      await begin({ subject: 'inst_2' })
      await begin({ subject: 'inst_4' })
      await store.alerts.apply({ ...NONE, ended }, Date.now())
      const subjects = async (isOpen: boolean) =>
        (await store.alerts.list({ limit: 2 }, isOpen)).data.map(({ subject }) => subject)
      expect(await subjects(true)).toEqual(['inst_4', 'inst_2'])
      expect(await subjects(false)).toEqual(['inst_3', 'inst_1'])
      const first = await store.alerts.list({ limit: 1 }, true)
      expect(await store.alerts.list({ limit: 1, cursor: first.nextCursor! }, true)).toMatchObject({
        data: [{ subject: 'inst_2' }],
        nextCursor: null,
      })
    })

    test('a node decides about the alerts of its own disk and those of dead nodes, not of another live node', async () => {
      await store.leases.attend('node-b-17-ab12')
      const disk = { rule: 'disk_nearly_full', since: 1 } as const
      for (const subject of [HOST, 'node-b', 'node-gone']) await store.alerts.apply(noticed({ ...disk, subject }), 10)
      expect((await open()).map(({ subject }) => subject).toSorted()).toEqual([HOST, 'node-gone'])
      expect((await store.alerts.listOpen('node-b')).map(({ subject }) => subject)).toContain('node-b')
    })

    test('each rule has a delay, which can be changed or switched off', async () => {
      expect(await store.alerts.findDelays()).toEqual(DEFAULT_ALERT_DELAYS)
      await store.alerts.setDelay('number_down', 30)
      await store.alerts.setDelay('number_down', 15)
      await store.alerts.setDelay('disk_nearly_full', null)
      expect(await store.alerts.findDelays()).toEqual({
        ...DEFAULT_ALERT_DELAYS,
        number_down: 15,
        disk_nearly_full: null,
      })
    })

    test('targets are stored encrypted and survive a restart', async () => {
      const created = (await store.alerts.createTarget(NTFY, 7))!
      expect(created).toMatchObject({ ...NTFY, createdAt: 7, failures: 0, lastError: null, lastSentAt: null })
      await store.close()
      store = await harness.open()
      expect(await store.alerts.listTargets()).toEqual([created])
      expect(await store.alerts.findTarget(created.id)).toEqual(created)
      expect(await store.alerts.findTarget('tgt_unknown')).toBeNull()
    })

    test('targets beyond the limit are refused', async () => {
      for (let count = 0; count < MAX_ALERT_TARGETS; count += 1) await store.alerts.createTarget(NTFY, count)
      expect(await store.alerts.createTarget(NTFY, 99)).toBeNull()
    })

    test('every target gets each notice once, and one node at a time sends them', async () => {
      const targets = [await store.alerts.createTarget(NTFY, 0), await store.alerts.createTarget(NTFY, 0)]
      const id = await begin()
      await store.alerts.apply({ ...NONE, ended: [id] }, Date.now())
      const claims = [await store.alerts.claimNotices(), await store.alerts.claimNotices()]
      expect(await store.alerts.claimNotices()).toBeNull()
      expect(claims.map(due => due?.target.id).toSorted()).toEqual(targets.map(target => target!.id).toSorted())
      for (const due of claims) {
        expect(due?.notices.map(({ alert, isEnd }) => [alert.id, isEnd])).toEqual([
          [id, false],
          [id, true],
        ])
        await store.alerts.recordSent(due!, 50)
      }
      expect(await store.alerts.claimNotices()).toBeNull()
      expect((await store.alerts.listTargets()).map(({ lastSentAt }) => lastSentAt)).toEqual([50, 50])
    })

    test('a notice that arrives while its predecessors are being sent is kept', async () => {
      await store.alerts.createTarget(NTFY, 0)
      await begin()
      const due = (await store.alerts.claimNotices())!
      const id = await begin({ subject: 'inst_2' })
      await store.alerts.recordSent(due, 50)
      expect((await store.alerts.claimNotices())?.notices).toMatchObject([{ alert: { id }, isEnd: false }])
    })

    test('a failed attempt is repeated after its pause, together with notices that arrived meanwhile', async () => {
      await store.alerts.createTarget(NTFY, 0)
      await begin()
      await store.alerts.recordFailed((await store.alerts.claimNotices())!, 'Answered 500.', MINUTE_MS)
      await begin({ subject: 'inst_2' })
      expect(await store.alerts.claimNotices()).toBeNull()
      expect(await store.alerts.listTargets()).toMatchObject([{ failures: 1, lastError: 'Answered 500.' }])
      const [target] = await store.alerts.listTargets()
      await store.alerts.recordFailed({ target: target!, notices: [] }, 'Answered 500.', 0)
      const due = (await store.alerts.claimNotices())!
      expect(due.notices).toHaveLength(2)
      expect(due.target.failures).toBe(2)
      await store.alerts.recordSent(due, 60)
      expect(await store.alerts.listTargets()).toMatchObject([{ failures: 0, lastError: null }])
    })

    test('a target gets no notice of the end of a problem that began before it existed', async () => {
      const id = await begin()
      await store.alerts.createTarget(NTFY, Date.now() + MINUTE_MS)
      await store.alerts.apply({ ...NONE, ended: [id] }, Date.now())
      expect(await store.alerts.claimNotices()).toBeNull()
    })

    test('notices of alerts that are erased are erased with them', async () => {
      await store.alerts.createTarget(NTFY, 0)
      const id = await begin()
      await store.alerts.apply({ ...NONE, ended: [id] }, Date.now())
      const muchLater = Date.now() + 100 * 24 * 60 * MINUTE_MS
      await store.alerts.apply(noticed({ subject: 'inst_2' }), muchLater)
      expect(await store.alerts.claimNotices()).toBeNull()
      expect(await listAll()).toEqual([])
    })

    test('more changes than one statement takes are applied in several calls', async () => {
      const many = Array.from({ length: 1_500 }, (_, index) => noticed({ subject: `inst_${index}` }).noticed[0]!)
      await store.alerts.apply({ ...NONE, noticed: many }, 1)
      await store.alerts.apply({ ...NONE, noticed: many.slice(1_000) }, 2)
      expect(await open()).toHaveLength(1_500)
      const ids = (await open()).map(alert => alert.id)
      expect(await store.alerts.apply({ ...NONE, began: ids }, 3)).toEqual({ began: 1_000, ended: 0 })
    })

    test('a deleted target gets nothing', async () => {
      const target = (await store.alerts.createTarget(NTFY, 0))!
      await begin()
      expect(await store.alerts.deleteTarget(target.id)).toBe(true)
      expect(await store.alerts.deleteTarget(target.id)).toBe(false)
      expect(await store.alerts.claimNotices()).toBeNull()
    })

    describe('problems', () => {
      let lease: Lease

      beforeEach(async () => {
        lease = await createConnected(store)
      })

      const find = async (now = Date.now()) =>
        (await store.alerts.findProblems(now)).map(({ rule, subject }) => {
          expect(subject).toBe(lease.instanceId)
          return rule
        })

      /** Ends the first attempt at an endpoint to post a new event. */
      async function post(now: number, after: AfterAttempt, endpoint = DEFAULT_ENDPOINT): Promise<void> {
        await store.events.storeIncoming(lease, incoming(), now)
        const delivery = (await store.deliveries.listFirst(lease.instanceId, 0, 100, endpoint)).at(-1)!
        await store.deliveries.recordAttempt(lease, delivery, attempt(delivery), after)
      }

      const deliver = (now: number) => post(now, { kind: 'delivered' })
      const fail = (now: number, isLast: boolean, endpoint?: string) =>
        post(now, isLast ? { kind: 'exhausted' } : { kind: 'retry', dueAt: now, failedAt: now }, endpoint)

      async function addOther(): Promise<string> {
        const { instanceId } = lease
        const settings = { url: 'https://elsewhere.example/hook', events: ['*'], active: true, description: null }
        const other = { instanceId, id: newEndpointId(), secret: 'whsec_b3RoZXI=', ...settings }
        expect(await store.endpoints.create(other, 1)).toMatchObject({ kind: 'created' })
        return other.id
      }

      test('a connected number with a working webhook has none', async () => {
        expect(await find()).toEqual([])
      })

      test('an imported number that nobody has connected, and an exported one, are not problems', async () => {
        const instance = imported()
        await store.transfers.import(instance, 5)
        expect(await find()).toEqual([])
        await store.transfers.export(instance.id, 6)
        expect(await find()).toEqual([])
      })

      test('a number is down while it is not connected or no node runs it, and lost when the phone unlinks it', async () => {
        await store.connections.record(lease, { state: 'reconnecting', reason: 'Cut.' }, Date.now())
        expect(await find()).toEqual(['number_down'])
        await store.connections.record(lease, { state: 'connected', reason: 'Connected.' }, Date.now())
        await store.leases.release(lease)
        expect(await find()).toEqual(['number_down'])
        const [again] = await store.leases.acquire('node-2', 10)
        const gone = { state: 'logged_out', reason: 'Unlinked.' } as const
        await store.connections.record(again!, { ...gone, cause: 'logged_out_by_phone' }, Date.now())
        expect(await find()).toEqual(['linking_lost'])
        for (const cause of ['logged_out_as_asked', 'logout_unconfirmed'] as const) {
          await store.connections.record(again!, { ...gone, cause }, Date.now())
          expect(await find()).toEqual([])
        }
      })

      test('a webhook fails when events are retried for a while or the last one was given up', async () => {
        const now = Date.now()
        await fail(now - 2 * MINUTE_MS, false)
        expect(await find(now)).toEqual(['webhook_failing'])
        const [{ detail } = { detail: '' }] = await store.alerts.findProblems(now)
        expect(detail).toBe('The webhook at receiver.example does not accept events.')
        expect(await find(now - 90_000)).toEqual([])
        await fail(now, true)
        expect(await find(now)).toEqual(['webhook_failing', 'events_given_up'])
      })

      test('when a later event was delivered, only the undelivered events are left', async () => {
        const now = Date.now()
        await fail(now - 10, true)
        await deliver(now)
        expect(await find(now)).toEqual(['events_given_up'])
        const [{ detail } = { detail: '' }] = await store.alerts.findProblems(now)
        expect(detail).toBe('1 event was given up after the last attempt.')
      })

      test('a webhook that is paused does not fail, but what it has missed stays a problem', async () => {
        const now = Date.now()
        const setActive = (active: boolean) => store.endpoints.change(lease.instanceId, DEFAULT_ENDPOINT, { active })
        await fail(now - 2 * MINUTE_MS, false)
        await setActive(false)
        expect(await find(now)).toEqual([])
        await setActive(true)
        expect(await find(now)).toEqual(['webhook_failing'])
        await fail(now, true)
        await setActive(false)
        expect(await find(now)).toEqual(['events_given_up'])
      })

      test('events for a deleted endpoint, or for a default one without a URL, are not problems', async () => {
        const now = Date.now()
        const other = await addOther()
        await store.instances.setWebhookUrl(lease.instanceId, null)
        for (const endpoint of [other, DEFAULT_ENDPOINT]) {
          if (endpoint === DEFAULT_ENDPOINT) await store.instances.setWebhookUrl(lease.instanceId, URL)
          await fail(now - 3 * MINUTE_MS, true, endpoint)
          expect(await find(now)).toEqual(['webhook_failing', 'events_given_up'])
          await fail(now - 2 * MINUTE_MS, false, endpoint)
          expect(await find(now)).toEqual(['webhook_failing', 'events_given_up'])
          await store.endpoints.delete(lease.instanceId, endpoint, now)
          expect(await find(now)).toEqual([])
        }
      })

      test('an endpoint fails although another one gave up a later event and works again', async () => {
        const now = Date.now()
        const other = await addOther()
        await fail(now - 30, true, other)
        await fail(now - 20, true)
        await deliver(now - 10)
        expect(await find(now)).toEqual(['webhook_failing', 'events_given_up'])
        const details = (await store.alerts.findProblems(now)).map(({ detail }) => detail)
        expect(details).toEqual([
          'The webhook at elsewhere.example does not accept events.',
          '2 events were given up after the last attempt.',
        ])
      })

      test('a deleted instance has none', async () => {
        await fail(Date.now(), true)
        await store.instances.delete(lease.instanceId, Date.now())
        expect(await find()).toEqual([])
      })
    })
  })
}
