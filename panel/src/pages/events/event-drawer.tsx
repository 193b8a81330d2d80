import { Alert, Button, Group } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ApiError, call } from '../../api/client.ts'
import { eventQuery } from '../../api/queries.ts'
import type { Attempt, EventDetail } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { useMay } from '../../api/use-role.ts'
import { DeliveryBadge } from '../../components/badges.tsx'
import { CodeBlock, CopyIconButton } from '../../components/copy/copy.tsx'
import { CopyCurl } from '../../components/copy/copy-curl.tsx'
import { Problem, ReadProblem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { RepeatIcon } from '../../components/icons.tsx'
import { JsonBlock } from '../../components/json-block.tsx'
import { DrawerPage, type Steps } from '../../components/log/drawer-page.tsx'
import { Step, Timeline } from '../../components/log/timeline.tsx'
import { MessageFile } from '../../components/media/file-preview.tsx'
import { Empty, Fact, Facts } from '../../components/panels.tsx'
import { Recipient } from '../../components/recipients/recipient.tsx'
import { Ago, Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { curlOfAttempt } from '../../text/curl.ts'
import { AttemptOutcome, isSuccess } from '../webhook/attempt-outcome.tsx'
import { statusText } from '../webhook/status-text.ts'
import classes from './event-drawer.module.css'

/** The service returns at most this many deliveries and attempts. */
const MAX_SHOWN = 100

interface EventDrawerProps {
  instanceId: string
  /** Undefined if closed. */
  eventId: string | undefined
  steps: Steps
  onClose: () => void
}

export function EventDrawer({ instanceId, eventId, steps, onClose }: EventDrawerProps) {
  const words = useWords()
  return (
    <DrawerPage opened={eventId !== undefined} onClose={onClose} title={words.event.title} steps={steps}>
      {eventId !== undefined && <OneEvent key={eventId} instanceId={instanceId} eventId={eventId} />}
    </DrawerPage>
  )
}

function OneEvent({ instanceId, eventId }: { instanceId: string; eventId: string }) {
  const words = useWords()
  const { data: event, error, refetch } = useQuery(eventQuery(instanceId, eventId))
  if (error instanceof ApiError && error.code === 'event_not_found') {
    return <Empty title={words.event.notFound}>{eventId}</Empty>
  }
  const problem = <ReadProblem data={event} error={error} refetch={refetch} />
  if (!event) return error ? problem : <Waiting />
  const mediaId = mediaIdIn(event)
  return (
    <div className={classes.page}>
      {problem}
      <div className={classes.top}>
        <code className={classes.kind}>{event.event}</code>
        <DeliveryBadge state={event.delivery?.state ?? null} attempts={event.delivery?.attemptCount} />
      </div>
      <Redeliver instanceId={instanceId} event={event} />
      {mediaId !== null && <MessageFile instanceId={instanceId} mediaId={mediaId} />}
      <Facts>
        <Fact name={words.event.id}>
          <span className={classes.id}>
            <code>{event.id}</code>
            <CopyIconButton value={event.id} what={words.event.id} />
          </span>
        </Fact>
        <Fact name={words.event.made}>
          <Time at={event.createdAt} />
        </Fact>
        {event.with && (
          <Fact name={words.events.with}>
            <Recipient to={event.with} />
          </Fact>
        )}
        {event.messageId && (
          <Fact name={words.event.message}>
            {/^(message\.(received|written|edited|deleted)|(media|command)\..*)$/.test(event.event) ? (
              <code>{event.messageId}</code>
            ) : (
              <Link to="/instances/$id/messages" params={{ id: instanceId }} search={{ open: event.messageId }}>
                <code>{event.messageId}</code>
              </Link>
            )}
          </Fact>
        )}
      </Facts>
      <Group gap="xs">
        <CopyCurl of={{ method: 'GET', path: `/v1/events/${event.id}` }} what={event.id} />
      </Group>
      <h2 className={classes.heading}>{words.event.deliveries}</h2>
      {event.deliveries.length === 0 && <p className={classes.hint}>{words.event.notPosted}</p>}
      {isCut(event) && <p className={classes.hint}>{words.event.onlyNewest}</p>}
      {event.deliveries.toReversed().map(delivery => (
        <DeliveryLog key={delivery.id} instanceId={instanceId} delivery={delivery} body={event.body} />
      ))}
      <div>
        <h2 className={classes.heading}>{words.event.body}</h2>
        <p className={classes.hint}>{words.event.bodyHint}</p>
      </div>
      <JsonBlock code={event.body} label={words.event.body} />
    </div>
  )
}

/** Whether the service left out older deliveries or attempts. */
function isCut({ deliveries }: EventDetail): boolean {
  return Math.max(deliveries.length, deliveries.flatMap(({ attempts }) => attempts).length) >= MAX_SHOWN
}

/** The file that a `message.received` or `media.*` is about. */
function mediaIdIn({ body }: EventDetail): string | null {
  const { data } = JSON.parse(body) as { data: { media?: { id: string } } }
  return data.media?.id ?? null
}

function Redeliver({ instanceId, event }: { instanceId: string; event: EventDetail }) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const redeliver = useAction({
    mutationFn: () => call(`/instances/${instanceId}/events/${event.id}/redeliver`, { method: 'POST' }),
    onSuccess: async () => {
      await client.invalidateQueries(eventQuery(instanceId, event.id))
      toast(words.event.redelivered)
    },
  })
  const mayRedeliver = useMay('operator')
  const state = event.delivery?.state ?? null
  const isOver = state === 'delivered' || state === 'exhausted' || state === null
  if (!isOver) return null
  return (
    <div className={classes.redeliver}>
      {state === 'exhausted' && (
        <Alert color="red" variant="light">
          {words.event.givenUp}
        </Alert>
      )}
      {mayRedeliver && (
        <div className={classes.redeliverRow}>
          <Button
            variant={state === 'exhausted' ? 'filled' : 'default'}
            leftSection={<RepeatIcon />}
            onClick={() => redeliver.mutate()}
            loading={redeliver.isPending}
          >
            {words.event.redeliver}
          </Button>
          <span className={classes.hint}>{words.event.redeliverHint}</span>
        </div>
      )}
      <Problem error={redeliver.error} />
    </div>
  )
}

type DeliveryWithAttempts = EventDetail['deliveries'][number]

interface DeliveryLogProps {
  instanceId: string
  delivery: DeliveryWithAttempts
  body: string
}

function DeliveryLog({ instanceId, delivery, body }: DeliveryLogProps) {
  const words = useWords()
  return (
    <section className={classes.delivery}>
      <header className={classes.deliveryHead}>
        <strong>{delivery.redelivery ? words.event.redelivery : words.event.delivery}</strong>
        <span className={classes.url}>
          {words.event.to} {delivery.url}
        </span>
      </header>
      <Timeline>
        {delivery.attempts.map(attempt => (
          <AttemptStep key={attempt.startedAt} attempt={attempt} body={body} />
        ))}
        {delivery.state === 'blocked' && (
          <Step title={words.events.states.blocked} open>
            {words.event.blocked}
          </Step>
        )}
        {delivery.state === 'pending' && (
          <Step
            title={words.event.nextAt}
            at={delivery.nextAttemptAt && <Ago at={delivery.nextAttemptAt} />}
            tone="wait"
            open
          >
            {delivery.nextAttemptAt && <Time at={delivery.nextAttemptAt} />}
            {delivery.attemptCount > 0 && <TryNow instanceId={instanceId} deliveryId={delivery.id} />}
          </Step>
        )}
      </Timeline>
    </section>
  )
}

/** Makes the next attempt at once. If it fails, the attempt of the schedule takes place at its time. */
function TryNow({ instanceId, deliveryId }: { instanceId: string; deliveryId: string }) {
  const words = useWords()
  const toast = useToast()
  const mayRetry = useMay('operator')
  const retry = useAction({
    mutationFn: () => call(`/instances/${instanceId}/deliveries/${deliveryId}/retry`, { method: 'POST' }),
    onSuccess: () => toast(words.event.retryRequested),
  })
  if (!mayRetry) return null
  return (
    <div className={classes.tryNow}>
      <Button
        size="compact-sm"
        leftSection={<RepeatIcon size={15} />}
        onClick={() => retry.mutate()}
        loading={retry.isPending}
      >
        {words.event.tryNow}
      </Button>
      <Problem error={retry.error} />
    </div>
  )
}

function AttemptStep({ attempt, body }: { attempt: Attempt; body: string }) {
  const words = useWords()
  const { attemptNumber, startedAt, durationMs, status, error, responseExcerpt, headers, url } = attempt
  const isOperator = useMay('operator')
  const explained = error ? (words.attemptErrors as Record<string, string>)[error] : statusText(status, words)
  return (
    <Step
      title={words.event.attempt(attemptNumber)}
      at={<Time at={startedAt} />}
      tone={isSuccess(status) ? 'good' : 'bad'}
    >
      <AttemptOutcome status={status} error={error} durationMs={durationMs} />
      {explained && <div>{explained}</div>}
      {responseExcerpt && (
        <details className={classes.details}>
          <summary>{words.event.response}</summary>
          <JsonBlock code={responseExcerpt} label={words.event.response} />
        </details>
      )}
      <details className={classes.details}>
        <summary>{words.event.headers}</summary>
        {!headers['webhook-signature'] && (
          <p className={classes.hint}>{isOperator ? words.event.signatureGone : words.event.signatureHidden}</p>
        )}
        <CodeBlock
          code={Object.entries(headers)
            .map(([name, value]) => `${name}: ${value}`)
            .join('\n')}
          label={words.event.headers}
        />
      </details>
      <CopyCurl of={curlOfAttempt({ url, headers, body })} what={words.event.attempt(attemptNumber)} />
    </Step>
  )
}
