import { beforeEach, describe, expect, test } from 'vitest'
import { type AlertChanges, DEFAULT_ALERT_DELAYS, type Problem } from '../../../../src/domain/alert.ts'
import type { NewAlertTarget } from '../../../../src/store/alerts/alerts.ts'
import { MAX_ALERT_TARGETS } from '../../../../src/store/alerts/alerts.ts'
import { InvalidCursor } from '../../../../src/store/errors.ts'
import type { Store } from '../../../../src/store/store.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'

const MINUTE_MS = 60_000
const HOST = 'node-a'
const NTFY: NewAlertTarget = { channel: 'ntfy', name: 'Night shift', address: { url: 'https://ntfy.sh/topic' } }
const NONE: AlertChanges = { noticed: [], reworded: [], began: [], gone: [], returned: [], ended: [], dropped: [] }

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

    test('an alert is announced with the present detail of its problem', async () => {
      await store.alerts.createTarget(NTFY, 0)
      await store.alerts.apply(noticed(), 10)
      const id = (await open())[0]!.id
      await store.alerts.apply({ ...NONE, began: [id], reworded: [{ id, detail: 'Banned.' }] }, 20)
      expect((await store.alerts.claimNotices())?.notices).toMatchObject([{ alert: { id, detail: 'Banned.' } }])
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
      // The name of the second host that is gone is the beginning of the name of a live one.
      for (const subject of [HOST, 'node-b', 'node-gone', 'node'])
        await store.alerts.apply(noticed({ ...disk, subject }), 10)
      expect((await open()).map(({ subject }) => subject).toSorted()).toEqual(['node', HOST, 'node-gone'])
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

    test('a target that failed before the clock was set back gets its notices', async () => {
      await store.alerts.createTarget(NTFY, 0)
      await begin()
      await store.alerts.recordFailed((await store.alerts.claimNotices())!, 'Answered 500.', 60 * MINUTE_MS)
      expect((await store.alerts.claimNotices())?.notices).toHaveLength(1)
      expect(await store.alerts.claimNotices()).toBeNull()
    })

    test('a target gets no notice of the end of a problem that began before it existed', async () => {
      await store.alerts.apply(noticed({ beganAt: 10 }), 10)
      await store.alerts.createTarget(NTFY, 20)
      await store.alerts.apply({ ...NONE, ended: [(await open())[0]!.id] }, 30)
      expect(await store.alerts.claimNotices()).toBeNull()
    })

    test('a target that was added before the clock was set back gets the notices', async () => {
      await store.alerts.createTarget(NTFY, 100)
      await store.alerts.apply(noticed({ beganAt: 9 }), 10)
      const { id } = (await open())[0]!
      await store.alerts.apply({ ...NONE, ended: [id] }, 200)
      const due = await store.alerts.claimNotices()
      expect(due?.notices.map(({ alert, isEnd }) => [alert.id, isEnd])).toEqual([
        [id, false],
        [id, true],
      ])
    })

    test('a dropped alert ends without a notice, and its waiting notice is not sent', async () => {
      await store.alerts.createTarget(NTFY, 0)
      const id = await begin()
      expect(await store.alerts.apply({ ...NONE, dropped: [id] }, 20)).toEqual({ began: 0, ended: 1 })
      expect(await store.alerts.claimNotices()).toBeNull()
      expect(await listAll()).toMatchObject([{ id, endedAt: 20 }])
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
  })
}
