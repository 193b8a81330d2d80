import { describe, expect, test } from 'vitest'
import type { StoreTotals } from '../store/statistics/statistics.ts'
import { Metrics, type MetricsSources } from './metrics.ts'

const TOTALS: StoreTotals = {
  queued: 3,
  oldestQueuedMs: 1_500,
  deliveries: { first: 1, retry: 2, blocked: 4 },
  oldestDueMs: 250,
  connections: {
    unlinked: 0,
    linking: 0,
    connecting: 0,
    connected: 7,
    reconnecting: 1,
    disconnected: 0,
    stopped: 0,
    logged_out: 0,
  },
  unowned: 2,
  bytes: 4096,
  media: {
    bytes: 77,
    pending: 6,
    fromUrls: 9,
    failed: {
      media_unavailable: 1,
      media_damaged: 0,
      media_too_large: 0,
      media_quota_exceeded: 2,
      media_not_configured: 0,
    },
  },
}

function sources(changes: Partial<MetricsSources> = {}): MetricsSources {
  return {
    totals: async () => TOTALS,
    ping: async () => undefined,
    inFlight: () => 5,
    owned: () => 8,
    diskSpace: async () => ({ freeBytes: 10, totalBytes: 100 }),
    ...changes,
  }
}

/** The values of Pombal's own metrics, by name and labels. */
async function samples(metrics: Metrics, from = sources()): Promise<Map<string, number>> {
  const { text } = await metrics.render(from)
  const lines = text.split('\n').filter(line => line.startsWith('pombal_'))
  return new Map(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

describe('metrics', () => {
  test('show the state of the store and the node at the time of the scrape', async () => {
    const found = await samples(new Metrics('1.2.3'))
    expect(Object.fromEntries(found)).toMatchObject({
      pombal_store_up: 1,
      pombal_messages_queued: 3,
      pombal_messages_oldest_queued_seconds: 1.5,
      'pombal_deliveries_waiting{readiness="first"}': 1,
      'pombal_deliveries_waiting{readiness="retry"}': 2,
      'pombal_deliveries_waiting{readiness="blocked"}': 4,
      pombal_deliveries_oldest_due_seconds: 0.25,
      'pombal_connections{state="connected"}': 7,
      'pombal_connections{state="logged_out"}': 0,
      pombal_instances_unowned: 2,
      pombal_instances_owned: 8,
      pombal_webhook_attempts_in_flight: 5,
      'pombal_disk_bytes{kind="free"}': 10,
      'pombal_disk_bytes{kind="total"}': 100,
      pombal_store_bytes: 4096,
      pombal_media_bytes: 77,
      pombal_media_pending: 6,
      pombal_url_fetches_pending: 9,
      'pombal_url_fetches_total{outcome="stored"}': 0,
      'pombal_media_failed{reason="media_quota_exceeded"}': 2,
      'pombal_build_info{version="1.2.3"}': 1,
    })
  })

  test('count fetches of files by outcome', async () => {
    const metrics = new Metrics('1.2.3')
    for (const end of ['stored', 'retry', 'retry', 'media_too_large']) metrics.onFetch(end)
    expect(Object.fromEntries(await samples(metrics))).toMatchObject({
      'pombal_url_fetches_total{outcome="stored"}': 1,
      'pombal_url_fetches_total{outcome="retry"}': 2,
      'pombal_url_fetches_total{outcome="media_too_large"}': 1,
    })
  })

  test('count attempts by outcome and lateness', async () => {
    const metrics = new Metrics('1.2.3')
    const end = (attemptNumber: number, status: number | null, error: string | null, next: 'delivered' | 'retry') =>
      metrics.onAttempt({
        attempt: { attemptNumber, status, error, durationMs: 40 },
        latenessMs: 20,
        next: { kind: next },
      })
    end(1, 503, null, 'retry')
    end(2, null, 'timeout', 'retry')
    end(3, 204, null, 'delivered')
    const found = Object.fromEntries(await samples(metrics))
    expect(found).toMatchObject({
      'pombal_webhook_attempts_total{outcome="5xx"}': 1,
      'pombal_webhook_attempts_total{outcome="timeout"}': 1,
      'pombal_webhook_attempts_total{outcome="2xx"}': 1,
      'pombal_deliveries_ended_total{state="delivered"}': 1,
      'pombal_deliveries_ended_total{state="exhausted"}': 0,
      'pombal_webhook_attempt_lateness_seconds_count{attempt="first"}': 1,
      'pombal_webhook_attempt_lateness_seconds_count{attempt="retry"}': 2,
      'pombal_webhook_attempt_seconds_bucket{le="0.05"}': 3,
      'pombal_webhook_attempt_seconds_bucket{le="0.025"}': 0,
    })
  })

  test('count writes by operation, and fenced writes and lost leases separately', async () => {
    const metrics = new Metrics('1.2.3')
    metrics.onWrite('messages.accept', 3, 'committed')
    metrics.onWrite('deliveries.attempt', 30, 'committed')
    metrics.onWrite('credentials.set', 1, 'fenced')
    metrics.onWrite('messages.accept', 1, 'unavailable')
    metrics.onLeaseLost()
    expect(Object.fromEntries(await samples(metrics))).toMatchObject({
      'pombal_store_write_seconds_count{operation="messages.accept"}': 1,
      'pombal_store_write_seconds_bucket{le="0.005",operation="messages.accept"}': 1,
      'pombal_store_write_seconds_sum{operation="deliveries.attempt"}': 0.03,
      'pombal_store_write_failures_total{end="unavailable"}': 1,
      'pombal_store_write_failures_total{end="failed"}': 0,
      pombal_fenced_writes_total: 1,
      pombal_leases_lost_total: 1,
    })
  })

  test('count the steps of messages by direction, and failures by code', async () => {
    const metrics = new Metrics('1.2.3')
    for (const step of ['accepted', 'sent', 'received'] as const) metrics.onMessageStep({ step })
    metrics.onMessageStep({ step: 'failed', code: 'expired' })
    expect(Object.fromEntries(await samples(metrics))).toMatchObject({
      'pombal_messages_total{direction="out",step="accepted"}': 1,
      'pombal_messages_total{direction="out",step="sent"}': 1,
      'pombal_messages_total{direction="out",step="read"}': 0,
      'pombal_messages_total{direction="in",step="received"}': 1,
      'pombal_messages_failed_total{code="expired"}': 1,
    })
  })

  test('count requests by route and status, and measure them by route', async () => {
    const metrics = new Metrics('1.2.3')
    const request = { method: 'POST', route: '/v1/messages/text', durationMs: 4 }
    metrics.onRequest({ ...request, status: 202 })
    metrics.onRequest({ ...request, status: 429 })
    metrics.onRequest({ ...request, route: '/v1/events/stream', status: 200, durationMs: null })
    expect(Object.fromEntries(await samples(metrics))).toMatchObject({
      'pombal_http_requests_total{method="POST",route="/v1/messages/text",status="429"}': 1,
      'pombal_http_request_seconds_count{method="POST",route="/v1/messages/text"}': 2,
    })
  })

  test('query the store once for all scrapes within 5 s', async () => {
    const metrics = new Metrics('1.2.3')
    let asked = 0
    const from = sources({
      totals: async () => {
        asked += 1
        return TOTALS
      },
    })
    await Promise.all([metrics.render(from), metrics.render(from)])
    await metrics.render(from)
    expect(asked).toBe(1)
  })

  test('omit the gauges of the store while it is unavailable, and render all others', async () => {
    const metrics = new Metrics('1.2.3')
    metrics.onLeaseLost()
    const found = await samples(metrics, sources({ totals: () => Promise.reject(new Error('away')) }))
    expect(Object.fromEntries(found)).toMatchObject({ pombal_store_up: 0, pombal_leases_lost_total: 1 })
    expect(
      [...found.keys()].filter(name => /queued|waiting|oldest|connections|unowned|store_bytes|media/.test(name)),
    ).toEqual([])
  })

  test('report the store as down if it can be read but not written', async () => {
    const metrics = new Metrics('1.2.3')
    const from = sources({ ping: () => Promise.reject(new Error('read-only')) })
    expect(Object.fromEntries(await samples(metrics, from))).toMatchObject({
      pombal_store_up: 0,
      pombal_messages_queued: 3,
    })
    expect((await samples(metrics)).get('pombal_store_up')).toBe(1)
  })
})
