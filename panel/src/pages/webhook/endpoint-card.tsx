import { Button, Group } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ALL_EVENTS, DEFAULT_ENDPOINT, isTestReceiver } from '../../../../src/domain/events/endpoint.ts'
import { callData } from '../../api/client.ts'
import { endpointsQuery } from '../../api/queries.ts'
import type { EndpointHealth, WebhookTest } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { useMay } from '../../api/use-role.ts'
import { Badge, type Tone } from '../../components/badges.tsx'
import { CopyField } from '../../components/copy/copy.tsx'
import { formatCount } from '../../components/delivery-health.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { Card, Fact, Facts } from '../../components/panels.tsx'
import { RetryAll } from '../../components/retry-all.tsx'
import { Ago, Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { Action, EndpointActions } from './endpoint-actions.tsx'
import { TestAnswer } from './test-answer.tsx'
import classes from './webhook.module.css'

const TONES = {
  idle: 'quiet',
  working: 'good',
  retrying: 'wait',
  failing: 'bad',
  missed: 'wait',
} as const satisfies Record<EndpointHealth['deliveries']['health'], Tone>

interface EndpointCardProps {
  endpoint: EndpointHealth
  /** The state could not be read again. */
  isOutdated: boolean
  /** A secret that was just created; undefined otherwise. */
  secret: string | undefined
  onSecret: (secret: string | undefined) => void
  onEdit: () => void
}

/** One endpoint: its state, and what can be done about it. */
export function EndpointCard({ endpoint, isOutdated, secret, onSecret, onEdit }: EndpointCardProps) {
  const words = useWords()
  const client = useQueryClient()
  const { id, instanceId, url, active, description, previousSecretUntil, deliveries } = endpoint
  const state = active ? words.endpoints.health[deliveries.health] : words.endpoints.paused
  const mayTest = useMay('operator')
  const isOwner = useMay('owner')
  const test = useAction({
    mutationFn: () => callData<WebhookTest>(`/instances/${instanceId}/endpoints/${id}/test`, { method: 'POST' }),
  })
  return (
    <Card
      title={
        <span className={classes.head}>
          <code className={classes.address}>{url}</code>
          <Badge tone={isOutdated ? 'quiet' : active ? TONES[deliveries.health] : 'wait'}>
            {isOutdated ? words.connection.lastKnown(state) : state}
          </Badge>
        </span>
      }
      hint={[
        description,
        isTestReceiver(url) && words.tools.testReceiver,
        id === DEFAULT_ENDPOINT && words.endpoints.isDefault,
      ]
        .filter(Boolean)
        .join(' · ')}
      action={
        mayTest && (
          <Button
            variant="light"
            onClick={() => test.mutate()}
            loading={test.isPending}
            aria-label={words.endpoints.testOf(url)}
          >
            {words.webhook.test}
          </Button>
        )
      }
    >
      {!active && <p className={classes.overlap}>{words.endpoints.pausedText}</p>}
      <Numbers endpoint={endpoint} />
      {secret !== undefined && <FreshSecret secret={secret} onDone={() => onSecret(undefined)} />}
      {previousSecretUntil && (
        <p className={classes.overlap} role="status">
          {words.webhook.overlap} <Time at={previousSecretUntil} />. {words.webhook.overlapText}
        </p>
      )}
      <div role="status">
        {test.isPending && <Waiting text={words.webhook.testing} />}
        {test.data?.url === url && !test.isPending && <TestAnswer answer={test.data} />}
      </div>
      <Problem error={test.error} />
      <Group gap="xs" mt="md">
        {mayTest && deliveries.retrying > 0 && <RetryAll instanceId={instanceId} endpoint={endpoint} />}
        <Button
          size="compact-sm"
          variant="default"
          aria-label={words.endpoints.deliveriesOf(url)}
          renderRoot={props => (
            <Link to="/instances/$id/events" params={{ id: instanceId }} search={{ endpoint: id }} {...props} />
          )}
        >
          {words.endpoints.deliveries}
        </Button>
        {(isOwner || (mayTest && id === DEFAULT_ENDPOINT)) && (
          <Action label={words.endpoints.editOf(url)} onClick={onEdit}>
            {words.endpoints.edit}
          </Action>
        )}
        {isOwner && (
          <EndpointActions
            path={`/instances/${instanceId}/endpoints/${id}`}
            endpoint={endpoint}
            refresh={() => client.invalidateQueries(endpointsQuery(instanceId))}
            onSecret={onSecret}
          />
        )}
      </Group>
    </Card>
  )
}

function Numbers({ endpoint: { events, deliveries, waiting, lastFailure } }: { endpoint: EndpointHealth }) {
  const words = useWords()
  const count = (number: number) =>
    number === 0 ? words.endpoints.nothing : words.endpoints.waitingCount(formatCount(number))
  const explained = lastFailure?.error && (words.attemptErrors as Record<string, string>)[lastFailure.error]
  return (
    <Facts>
      <Fact name={words.endpoints.waiting}>{count(waiting)}</Fact>
      <Fact name={words.endpoints.givenUp}>{count(deliveries.givenUp)}</Fact>
      <Fact name={words.endpoints.lastSuccess}>
        {deliveries.lastDeliveredAt ? <Ago at={deliveries.lastDeliveredAt} /> : words.endpoints.never}
      </Fact>
      <Fact name={words.endpoints.lastFailure}>
        {lastFailure ? (
          <>
            <Ago at={lastFailure.at} />:{' '}
            {lastFailure.status === null ? (
              <code>{lastFailure.error}</code>
            ) : (
              words.endpoints.answered(lastFailure.status)
            )}
            {explained && <div className={classes.note}>{explained}</div>}
          </>
        ) : (
          words.endpoints.never
        )}
      </Fact>
      <Fact name={words.endpoints.receives}>
        {events.includes(ALL_EVENTS) ? words.endpoints.everything : <code>{events.join(' ')}</code>}
      </Fact>
    </Facts>
  )
}

function FreshSecret({ secret, onDone }: { secret: string; onDone: () => void }) {
  const words = useWords()
  return (
    <div className={classes.fresh} role="status">
      <span>{words.endpoints.secretOnce}</span>
      <CopyField label={words.endpoints.secret} value={secret} />
      <div>
        <Button size="compact-sm" variant="default" onClick={onDone}>
          {words.endpoints.done}
        </Button>
      </div>
    </div>
  )
}
