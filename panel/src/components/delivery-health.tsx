import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useAwaySince } from '../api/live.ts'
import { activityQuery } from '../api/queries.ts'
import type { Activity } from '../api/types.ts'
import { useMay } from '../api/use-role.ts'
import { useWords } from '../i18n/i18n.tsx'
import { Badge, type Tone } from './badges.tsx'
import classes from './delivery-health.module.css'
import { Notice } from './feedback/notice.tsx'
import { Problem } from './feedback/problem.tsx'
import { RetryAll } from './retry-all.tsx'
import { Ago, useNow } from './time.tsx'

/** An undelivered event counts as waiting only once it is older than this. */
const WAITS_AFTER_MS = 10_000
const UPDATE_EVERY_MS = 5_000
/** The service counts up to this number. */
const MAX_RECENT = 1_000

type Trouble = 'failing' | 'retrying' | 'missed' | 'waiting'

export const TONES: Record<Trouble, Tone & ('bad' | 'wait')> = {
  failing: 'bad',
  retrying: 'wait',
  missed: 'wait',
  waiting: 'wait',
}

/** The trouble with the webhook of an instance. Null if none is known. */
export function troubleOf({ deliveries: { health }, oldestUndeliveredAt }: Activity, now: number): Trouble | null {
  if (health === 'failing' || health === 'retrying' || health === 'missed') return health
  const isLate = oldestUndeliveredAt !== null && now - Date.parse(oldestUndeliveredAt) > WAITS_AFTER_MS
  return isLate ? 'waiting' : null
}

/** The events that the trouble concerns. */
function searchOf(trouble: Trouble): { state: 'exhausted' | 'pending' } {
  return { state: trouble === 'failing' || trouble === 'missed' ? 'exhausted' : 'pending' }
}

/** The events that explain the trouble: if any events were given up, these. */
export function shownOf(trouble: Trouble, { deliveries }: Activity): ReturnType<typeof searchOf> {
  return deliveries.givenUp > 0 ? { state: 'exhausted' } : searchOf(trouble)
}

export function formatCount(count: number): string {
  return count >= MAX_RECENT ? `${MAX_RECENT}+` : String(count)
}

/** The trouble of an instance's webhook, or the time of its last delivery, as a list shows it. */
export function Deliveries({ activity }: { activity: Activity }) {
  const { deliveryHealth: words } = useWords()
  const trouble = troubleOf(activity, useNow(UPDATE_EVERY_MS))
  const { givenUp, retrying, lastDeliveredAt } = activity.deliveries
  if (trouble === null) {
    return (
      <span className={classes.quiet}>
        {lastDeliveredAt ? (
          <>
            {words.lastDelivered} <Ago at={lastDeliveredAt} />
          </>
        ) : (
          words.nothingYet
        )}
      </span>
    )
  }
  return (
    <>
      <Badge tone={TONES[trouble]}>{words[trouble]}</Badge>
      <div className={classes.detail}>
        {givenUp > 0 && words.givenUpShort(formatCount(givenUp))}
        {givenUp === 0 && retrying > 0 && words.retryingShort(formatCount(retrying))}
        {trouble === 'waiting' && activity.oldestUndeliveredAt && (
          <>
            {words.oldestShort} <Ago at={activity.oldestUndeliveredAt} />
          </>
        )}
      </div>
    </>
  )
}

/** @returns the trouble, null if there is none or it is unknown; and why it could not be read the last time */
function useTrouble(instanceId: string) {
  const { data, error, refetch } = useQuery(activityQuery([instanceId]))
  const now = useNow(UPDATE_EVERY_MS)
  const activity = data?.find(entry => entry.instanceId === instanceId)
  const trouble = activity && troubleOf(activity, now)
  return { found: trouble ? { trouble, activity } : null, error, refetch }
}

/** Shown next to the name of an instance on all its pages. */
export function DeliveryMark({ instanceId }: { instanceId: string }) {
  const { deliveryHealth: words } = useWords()
  const { found } = useTrouble(instanceId)
  if (!found) return null
  return (
    <Link
      to="/instances/$id/events"
      params={{ id: instanceId }}
      search={searchOf(found.trouble)}
      className={classes.mark}
    >
      <Badge tone={TONES[found.trouble]}>{words.badge(words[found.trouble])}</Badge>
    </Link>
  )
}

/** The trouble with the webhook, and how to fix it. */
export function DeliveryWarning({ instanceId }: { instanceId: string }) {
  const { found, error, refetch } = useTrouble(instanceId)
  const isAway = useAwaySince() !== null
  return (
    <>
      {!isAway && <Problem error={error} onRetry={() => void refetch()} />}
      {found && <TroubleNotice instanceId={instanceId} {...found} />}
    </>
  )
}

function TroubleNotice({
  instanceId,
  trouble,
  activity,
}: {
  instanceId: string
  trouble: Trouble
  activity: Activity
}) {
  const words = useWords()
  const mayTest = useMay('operator')
  const { givenUp, retrying, lastDeliveredAt } = activity.deliveries
  const texts = words.deliveryHealth
  return (
    <Notice tone={TONES[trouble]} title={texts.titles[trouble]}>
      <div>
        {givenUp > 0 && `${texts.givenUp(formatCount(givenUp))} `}
        {retrying > 0 && `${texts.retryingText(formatCount(retrying))} `}
        {activity.oldestUndeliveredAt && (
          <>
            {texts.oldest} <Ago at={activity.oldestUndeliveredAt} />
            {' · '}
          </>
        )}
        {lastDeliveredAt ? (
          <>
            {texts.lastSuccess} <Ago at={lastDeliveredAt} />
          </>
        ) : (
          texts.neverAccepted
        )}
      </div>
      <div>{trouble === 'failing' ? texts.doNow : trouble === 'missed' ? texts.redeliver : texts.doLater}</div>
      <Group mt="sm" gap="sm">
        {retrying > 0 && <RetryAll instanceId={instanceId} />}
        <Button
          size="compact-sm"
          variant="default"
          renderRoot={props => (
            <Link
              to="/instances/$id/events"
              params={{ id: instanceId }}
              search={shownOf(trouble, activity)}
              {...props}
            />
          )}
        >
          {givenUp > 0 ? words.webhook.seeGivenUp : words.webhook.seeWaiting}
        </Button>
        {mayTest && (
          <Button
            size="compact-sm"
            variant="default"
            renderRoot={props => <Link to="/instances/$id/webhook" params={{ id: instanceId }} {...props} />}
          >
            {words.webhook.test}
          </Button>
        )}
      </Group>
    </Notice>
  )
}
