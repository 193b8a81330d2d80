import type { FastifyRequest } from 'fastify'
import type { Role } from '../../../domain/access.ts'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import type { InstanceTrouble } from '../../../store/statistics/statistics.ts'
import type { Api, ApiContext } from '../../context.ts'
import {
  type AttentionView,
  attentionSchema,
  type FailingEndpointView,
  troubleView,
} from '../../resources/attention.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { hasRole } from '../access/authorize.ts'

const HOUR_MS = 60 * 60_000
const WEEK_MS = 7 * 24 * HOUR_MS
const MAX_LISTED = 50
const KEPT_MS = 1_000
/** A read that takes longer is no longer shared: if it hangs, it delays only the callers that already wait for it. */
const SHARED_MS = 10_000
/** Answers that are kept: one for each set of instances that accounts are limited to. */
const MAX_KEPT = 100

interface Kept {
  answer: Promise<AttentionView>
  /** On the monotonic clock. */
  until: number
}

export function getAttention(api: Api, context: ApiContext): void {
  const kept = new BoundedMap<string, Kept>(MAX_KEPT)

  /** Callers who reach the same instances share a read that has been running for at most `SHARED_MS`, or that ended at most `KEPT_MS` ago. */
  function current(reached: readonly string[] | null): Promise<AttentionView> {
    const key = JSON.stringify(reached)
    const found = kept.get(key)
    if (found !== undefined && performance.now() < found.until) return found.answer
    const entry = { answer: readAttention(context, reached), until: performance.now() + SHARED_MS }
    kept.set(key, entry)
    entry.answer.then(
      () => {
        entry.until = performance.now() + KEPT_MS
      },
      () => {
        if (kept.get(key) === entry) kept.delete(key)
      },
    )
    return entry.answer
  }

  api.get(
    '/attention',
    {
      schema: {
        operationId: 'getAttention',
        summary: 'Read what needs attention',
        tags: ['Statistics'],
        response: { 200: dataOf(attentionSchema, 'The current problems.') },
      },
    },
    async request => {
      const attention = await current(request.account?.instances ?? null)
      const { disk, operatorEndpoints } = attention
      return {
        data: {
          ...attention,
          disk: reachesAll(request, 'operator') ? disk : null,
          operatorEndpoints: reachesAll(request, 'owner') ? operatorEndpoints : [],
        },
      }
    },
  )
}

/** Whether the caller may see problems that concern all instances. */
function reachesAll(request: FastifyRequest, role: Role): boolean {
  return !request.account?.instances && hasRole(request, role)
}

/** @param reached null: all instances */
async function readAttention(context: ApiContext, reached: readonly string[] | null): Promise<AttentionView> {
  const { store, now, diskSpace } = context
  const [troubles, disk, operatorEndpoints] = await Promise.all([
    store.statistics.troubles(now() - WEEK_MS, reached),
    diskSpace(),
    reached === null ? readFailingEndpoints(context) : [],
  ])
  const listed = troubles.toSorted((one, other) => urgency(one) - urgency(other)).slice(0, MAX_LISTED)
  const ids = listed.map(({ instance }) => instance.id)
  const activity = await store.statistics.activity(ids, now() - HOUR_MS, now() - WEEK_MS)
  const byId = new Map(activity.map(entry => [entry.instanceId, entry]))
  const instances = listed.map(trouble => troubleView(trouble, byId.get(trouble.instance.id)!))
  return { total: troubles.length, instances, operatorEndpoints, disk }
}

async function readFailingEndpoints({ store, now }: ApiContext): Promise<FailingEndpointView[]> {
  const endpoints = await store.operatorEndpoints.list()
  const counted = await Promise.all(
    endpoints.map(async ({ id, url, active, description }) => {
      const deliveries = await store.operatorEndpoints.countDeliveries(id, now() - WEEK_MS)
      return { id, url, active, description, deliveries: { ...deliveries } }
    }),
  )
  return counted.filter(({ active, deliveries }) => deliveries.givenUp > 0 || (active && deliveries.retrying > 0))
}

/** Lower is more urgent. Instances of equal urgency are in the order of their creation. */
function urgency({ instance, restrictedUntil, hasGivenUp, isRetrying }: InstanceTrouble): number {
  const isOpen = instance.state === 'connected' || instance.state === 'reconnecting'
  if (!isOpen && !(instance.state === 'unlinked' && (hasGivenUp || isRetrying))) return 0
  if (hasGivenUp) return 1
  return restrictedUntil === null ? 3 : 2
}
