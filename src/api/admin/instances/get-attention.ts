import type { InstanceId } from '../../../domain/ids.ts'
import type { InstanceTrouble } from '../../../store/statistics/statistics.ts'
import type { Api, ApiContext } from '../../context.ts'
import { type AttentionView, attentionSchema, troubleView } from '../../resources/attention.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { mayReach } from '../access/authorize.ts'

const HOUR_MS = 60 * 60_000
const WEEK_MS = 7 * 24 * HOUR_MS
const MAX_LISTED = 50
/** Open panels share an answer, except those of accounts that are limited to instances. */
const KEPT_MS = 1_000

export function getAttention(api: Api, context: ApiContext): void {
  const { now } = context
  let kept: { until: number; answer: Promise<AttentionView> } | null = null

  function current(): Promise<AttentionView> {
    if (kept !== null && now() < kept.until) return kept.answer
    const answer = readAttention(context)
    kept = { until: now() + KEPT_MS, answer }
    answer.catch(() => {
      kept = null
    })
    return answer
  }

  api.get(
    '/attention',
    {
      schema: {
        operationId: 'getAttention',
        summary: 'Read what needs attention',
        tags: ['Statistics'],
        response: { 200: dataOf(attentionSchema, 'The current troubles.') },
      },
    },
    async request => {
      if (!request.account?.instances) return { data: await current() }
      return { data: await readAttention(context, id => mayReach(request, id)) }
    },
  )
}

async function readAttention(
  { store, now, diskSpace }: ApiContext,
  reaches: (id: InstanceId) => boolean = () => true,
): Promise<AttentionView> {
  const [all, disk] = await Promise.all([store.statistics.troubles(now() - WEEK_MS), diskSpace()])
  const troubles = all.filter(({ instance }) => reaches(instance.id))
  const listed = troubles.toSorted((one, other) => urgency(one) - urgency(other)).slice(0, MAX_LISTED)
  const ids = listed.map(({ instance }) => instance.id)
  const activity = await store.statistics.activity(ids, now() - HOUR_MS, now() - WEEK_MS)
  const byId = new Map(activity.map(entry => [entry.instanceId, entry]))
  const instances = listed.map(trouble => troubleView(trouble, byId.get(trouble.instance.id)!))
  return { total: troubles.length, instances, disk }
}

/** Lower is more urgent. The order within is that of creation. */
function urgency({ instance, restrictedUntil, hasGivenUp, isRetrying }: InstanceTrouble): number {
  const isOpen = instance.state === 'connected' || instance.state === 'reconnecting'
  if (!isOpen && !(instance.state === 'unlinked' && (hasGivenUp || isRetrying))) return 0
  if (hasGivenUp) return 1
  return restrictedUntil === null ? 3 : 2
}
