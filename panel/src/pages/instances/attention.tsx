import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { REQUESTED_LOGOUT } from '../../../../src/domain/connection/connection.ts'
import { useAwaySince } from '../../api/live.ts'
import { attentionQuery } from '../../api/queries.ts'
import type { Attention, ConnectionCause, FailingOperatorEndpoint, TroubledInstance } from '../../api/types.ts'
import { Badge, type Tone } from '../../components/badges.tsx'
import { formatCount, shownOf, TONES, troubleOf } from '../../components/delivery-health.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { WarningIcon } from '../../components/icons.tsx'
import { RetryAll } from '../../components/retry-all.tsx'
import { Ago, oneDecimal, Time, useNow } from '../../components/time.tsx'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'
import classes from './attention.module.css'

/** More would push the list of instances off the screen. */
const FIRST_SHOWN = 4
const UPDATE_EVERY_MS = 5_000
const GIB = 1024 ** 3

/** What needs attention, with the remedy. Renders nothing if all is well, or if the service does not answer (the shell says so). */
export function AttentionList() {
  const { attention: words } = useWords()
  const { data, error, refetch } = useQuery(attentionQuery)
  const [isWhole, setWhole] = useState(false)
  const isAway = useAwaySince() !== null
  if (isAway) return null
  const problem = <Problem error={error} onRetry={() => void refetch()} />
  if (!data) return problem
  const isDiskFull = data.disk?.isNearlyFull === true
  // A node of the previous version leaves out the operator endpoints.
  const { operatorEndpoints = [] } = data
  const count = data.total + operatorEndpoints.length + (isDiskFull ? 1 : 0)
  if (count === 0) return problem
  const shown = isWhole ? data.instances : data.instances.slice(0, FIRST_SHOWN)
  const more = data.instances.length - shown.length
  return (
    <>
      {problem}
      <section className={classes.card} aria-labelledby="attention">
        <h2 id="attention" className={classes.title}>
          <WarningIcon /> {words.title(count)}
        </h2>
        <ul className={classes.list}>
          {isDiskFull && <FullDisk disk={data.disk} />}
          {operatorEndpoints.map(endpoint => (
            <FailingEndpoint key={endpoint.id} endpoint={endpoint} />
          ))}
          {shown.map(instance => (
            <Trouble key={instance.id} instance={instance} />
          ))}
        </ul>
        {(more > 0 || isWhole) && (
          <Button variant="subtle" size="compact-sm" mt="sm" onClick={() => setWhole(!isWhole)} aria-expanded={isWhole}>
            {isWhole ? words.fewer : words.more(more)}
          </Button>
        )}
        {data.total > data.instances.length && isWhole && (
          <p className={classes.rest}>{words.rest(data.total - data.instances.length)}</p>
        )}
      </section>
    </>
  )
}

function FullDisk({ disk }: { disk: Attention['disk'] }) {
  const { attention: words } = useWords()
  const { language } = useLanguage()
  if (!disk) return null
  return (
    <li className={classes.item}>
      <div className={classes.head}>
        <strong>{words.disk}</strong>
        <Badge tone="bad">
          {words.diskFree(oneDecimal(disk.freeBytes / GIB, language), oneDecimal(disk.totalBytes / GIB, language))}
        </Badge>
      </div>
      <p className={classes.remedy}>{words.diskRemedy}</p>
    </li>
  )
}

function FailingEndpoint({ endpoint: { url, description, deliveries } }: { endpoint: FailingOperatorEndpoint }) {
  const words = useWords()
  const { retrying, givenUp } = deliveries
  return (
    <li className={classes.item}>
      <div className={classes.head}>
        <strong>{words.operatorEndpoints.one}</strong>
        <code className={classes.phone}>{description ?? url}</code>
        <Badge tone="bad">
          {words.deliveryHealth.badge(words.deliveryHealth[retrying > 0 ? 'retrying' : 'missed'])}
        </Badge>
      </div>
      <p className={classes.remedy}>
        {givenUp > 0 && `${words.deliveryHealth.givenUp(formatCount(givenUp))} `}
        {retrying > 0 && `${words.deliveryHealth.retryingText(formatCount(retrying))} `}
        {words.operatorEndpoints.remedy} <Link to="/alerts">{words.operatorEndpoints.open}</Link>
      </p>
    </li>
  )
}

function Trouble({ instance }: { instance: TroubledInstance }) {
  const words = useWords()
  const params = { id: instance.id }
  const deliveries = troubleOf(instance.activity, useNow(UPDATE_EVERY_MS))
  const number = numberTrouble(instance)
  const { givenUp, retrying } = instance.activity.deliveries
  const remedies: Partial<Record<ConnectionCause, string>> = words.connection.remedies
  return (
    <li className={classes.item}>
      <div className={classes.head}>
        <Link to="/instances/$id" params={params} className={classes.name}>
          {instance.name}
        </Link>
        {instance.phone && <span className={classes.phone}>+{instance.phone}</span>}
        {number && (
          <Badge tone={number}>
            {number === 'wait' ? words.attention.restricted : words.connection.states[instance.state].name}
          </Badge>
        )}
        {deliveries && (
          <Badge tone={TONES[deliveries]}>{words.deliveryHealth.badge(words.deliveryHealth[deliveries])}</Badge>
        )}
      </div>
      {number && (
        <p className={classes.remedy}>
          {number === 'wait' && instance.restrictedUntil ? (
            <>
              {words.health.restrictedUntil} <Time at={instance.restrictedUntil} />.
            </>
          ) : (
            ((instance.cause && remedies[instance.cause]) ?? words.connection.states[instance.state].text)
          )}{' '}
          <Link to="/instances/$id" params={params}>
            {words.attention.openInstance}
          </Link>
        </p>
      )}
      {deliveries && (
        <p className={classes.remedy}>
          {givenUp > 0 && `${words.deliveryHealth.givenUp(formatCount(givenUp))} `}
          {retrying > 0 && `${words.deliveryHealth.retryingText(formatCount(retrying))} `}
          {instance.activity.oldestUndeliveredAt && (
            <>
              {words.deliveryHealth.oldest} <Ago at={instance.activity.oldestUndeliveredAt} />
              {' · '}
            </>
          )}
          {deliveries === 'missed' ? words.deliveryHealth.redeliver : words.attention.fixReceiver}{' '}
          <Link to="/instances/$id/events" params={params} search={shownOf(deliveries, instance.activity)}>
            {givenUp > 0 ? words.webhook.seeGivenUp : words.webhook.seeWaiting}
          </Link>
        </p>
      )}
      {retrying > 0 && (
        <div className={classes.action}>
          <RetryAll instanceId={instance.id} />
        </div>
      )}
    </li>
  )
}

/** The colour of the trouble with the number itself. Null if the instance is listed for its webhook alone. */
function numberTrouble({ state, cause, restrictedUntil }: TroubledInstance): Tone | null {
  switch (state) {
    case 'stopped':
    case 'disconnected':
      return 'bad'
    case 'logged_out':
      return REQUESTED_LOGOUT.some(requested => requested === cause) ? null : 'bad'
    case 'unlinked':
      return cause === null || QUIET_CAUSES.has(cause) ? null : 'bad'
    default:
      return restrictedUntil ? 'wait' : null
  }
}

/** A number with these causes is not linked because nobody has linked it yet. */
const QUIET_CAUSES = new Set<ConnectionCause>(['never_linked', 'linking_interrupted', 'code_expired'])
