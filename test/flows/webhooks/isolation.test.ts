import { describe, expect, inject, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { createReceiver, eventOf } from '../../receiver.ts'
import { until } from '../../until.ts'
import { WebhookHarness } from './harness.ts'

const WAITING = 10_000
const EVENTS = 40

describe.each(ONE_STORE)('isolation on %s', kind => {
  test('while 10,000 deliveries wait for a consumer that hangs, another instance’s events do not wait', async () => {
    await using harness = await WebhookHarness.open(kind, inject('postgresUrl'), {
      timeoutMs: 500,
      retryDelaysMs: [1_000, 5_000],
    })
    await using dead = await createReceiver()
    await using alive = await createReceiver()
    dead.answerWith({ kind: 'hang' })
    const [deaf, listener] = [await harness.addInstance(dead.url), await harness.addInstance(alive.url)]
    /** How long this many events take one after another, the shortest first. */
    const arrivalTimes = async () => {
      const tookMs: number[] = []
      for (let count = 0; count < EVENTS; count += 1) {
        const [begun, before] = [performance.now(), alive.requests.length]
        await listener.receive()
        await alive.waitFor(before + 1)
        tookMs.push(alive.requests[before]!.receivedAt - begun)
      }
      return tookMs.sort((a, b) => a - b)
    }
    const quietMs = await arrivalTimes()
    await deaf.receiveMany(WAITING)
    const besideMs = await arrivalTimes()
    expect(besideMs[EVENTS / 2]).toBeLessThan(1_000 + 10 * quietMs[EVENTS / 2]!)
    // Queued behind the pending deliveries it would take ten minutes: 500 ms for each, 8 at a time.
    expect(besideMs[EVENTS * 0.95]).toBeLessThan(20_000)
    expect(dead.requests.length).toBeGreaterThan(0)
    expect(dead.mostOpen).toBeLessThanOrEqual(8)
  })

  test('an endpoint never has more than 8 open requests, 6 of them first attempts', async () => {
    await using harness = await WebhookHarness.open(kind, inject('postgresUrl'), { retryDelaysMs: Array(5).fill(100) })
    await using receiver = await createReceiver()
    const instance = await harness.addInstance(receiver.url)
    const open = { first: 0, retry: 0 }
    const most = { first: 0, all: 0 }
    const sortOf = (attempt: unknown) => (attempt === '1' ? 'first' : 'retry')
    receiver.answerWith(({ headers, index }) => {
      const sort = sortOf(headers['x-service-attempt'])
      open[sort] += 1
      most.first = Math.max(most.first, open.first)
      most.all = Math.max(most.all, open.first + open.retry)
      const delayMs = sort === 'retry' ? 150 : 10
      setTimeout(() => {
        open[sort] -= 1
      }, delayMs - 5)
      return { kind: 'status', status: index < 60 ? 500 : 200, delayMs }
    })
    await instance.receiveMany(150)
    await instance.untilAll('delivered')
    expect(most.first).toBeLessThanOrEqual(6)
    expect(most.all).toBe(8)
    expect(receiver.mostOpen).toBe(8)
  })

  test('first attempts arrive in the order of the events if the consumer accepts one at a time', async () => {
    await using harness = await WebhookHarness.open(kind, inject('postgresUrl'))
    await using receiver = await createReceiver()
    const instance = await harness.addInstance(receiver.url)
    const ids: string[] = []
    for (let count = 0; count < 20; count += 1) {
      ids.push(await instance.receive())
      await receiver.waitFor(count + 1)
    }
    expect(receiver.requests.map(request => eventOf(request).data.id)).toEqual(ids)
  })

  test('pending deliveries of a deleted instance are attempted to the end', async () => {
    await using harness = await WebhookHarness.open(kind, inject('postgresUrl'), { retryDelaysMs: [50, 50] })
    await using receiver = await createReceiver()
    receiver.answerWith({ kind: 'status', status: 500 })
    const instance = await harness.addInstance(receiver.url)
    await instance.receive()
    await receiver.waitFor(1)
    await harness.store.instances.delete(instance.id, Date.now())
    await harness.restart()
    await receiver.waitFor(3)
    const lease = harness.leaseOf(instance.id)
    expect(await until('the rows to go', () => harness.store.instances.erase(lease))).toBe(true)
    expect(receiver.requests.length).toBeLessThanOrEqual(4)
  })
})
