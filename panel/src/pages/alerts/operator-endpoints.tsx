import { Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { callData } from '../../api/client.ts'
import { operatorEndpointsQuery } from '../../api/queries.ts'
import type { OperatorEndpoint, WebhookTest } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { useMay } from '../../api/use-role.ts'
import { Badge } from '../../components/badges.tsx'
import { CopyField } from '../../components/copy/copy.tsx'
import { formatCount } from '../../components/delivery-health.tsx'
import { Problem, ReadProblem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { Card } from '../../components/panels.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { Action, EndpointActions } from '../webhook/endpoint-actions.tsx'
import { TestAnswer } from '../webhook/test-answer.tsx'
import classes from './alerts.module.css'
import { OperatorDialog } from './operator-dialog.tsx'

/** The endpoints that receive the connection events of all instances. */
export function OperatorEndpoints() {
  const words = useWords()
  const [edited, setEdited] = useState<OperatorEndpoint | 'new' | null>(null)
  const [fresh, setFresh] = useState<{ id: string; secret: string } | null>(null)
  const isOwner = useMay('owner')
  const { data: endpoints, error, refetch } = useQuery(operatorEndpointsQuery)
  return (
    <Card
      title={words.operatorEndpoints.title}
      hint={words.operatorEndpoints.hint}
      action={
        isOwner && (
          <Button variant="default" onClick={() => setEdited('new')}>
            {words.endpoints.add}
          </Button>
        )
      }
    >
      <ReadProblem data={endpoints} error={error} refetch={refetch} />
      {endpoints?.length === 0 && <p className={classes.note}>{words.operatorEndpoints.none}</p>}
      <ul className={classes.list}>
        {endpoints?.map(endpoint => (
          <Item
            key={endpoint.id}
            endpoint={endpoint}
            freshSecret={endpoint.id === fresh?.id ? fresh.secret : null}
            onSecret={secret => setFresh(secret === null ? null : { id: endpoint.id, secret })}
            onEdit={() => setEdited(endpoint)}
          />
        ))}
      </ul>
      {edited !== null && (
        <OperatorDialog
          endpoint={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
          onCreated={({ id, secret }) => setFresh({ id, secret })}
        />
      )}
    </Card>
  )
}

interface ItemProps {
  endpoint: OperatorEndpoint
  /** Its secret, if it was just created. */
  freshSecret: string | null
  onSecret: (secret: string | null) => void
  onEdit: () => void
}

function Item({ endpoint, freshSecret, onSecret, onEdit }: ItemProps) {
  const words = useWords()
  const { id, url, description, events, active, previousSecretUntil, deliveries } = endpoint
  const client = useQueryClient()
  const refresh = () => client.invalidateQueries(operatorEndpointsQuery)
  const test = useAction({
    mutationFn: () => callData<WebhookTest>(`/endpoints/${id}/test`, { method: 'POST' }),
  })
  return (
    <li>
      <div>
        <code>{url}</code> {!active && <Badge tone="wait">{words.endpoints.paused}</Badge>}
        {active && deliveries.retrying > 0 && <Badge tone="bad">{words.endpoints.health.retrying}</Badge>}
        {description && <div className={classes.note}>{description}</div>}
        <div className={classes.note}>
          {events.includes('instance.*') ? words.operatorEndpoints.everything : events.join(', ')}
        </div>
        <div className={classes.note}>
          {words.operatorEndpoints.counts(formatCount(deliveries.waiting), formatCount(deliveries.givenUp))}
        </div>
        {freshSecret !== null && (
          <>
            <CopyField label={words.endpoints.secret} value={freshSecret} />
            <p className={classes.note}>{words.endpoints.secretOnce}</p>
            <Button size="compact-sm" variant="default" onClick={() => onSecret(null)}>
              {words.endpoints.done}
            </Button>
          </>
        )}
        {previousSecretUntil && (
          <p className={classes.note} role="status">
            {words.webhook.overlap} <Time at={previousSecretUntil} />. {words.webhook.overlapText}
          </p>
        )}
        <div role="status">
          {test.isPending && <Waiting text={words.webhook.testing} />}
          {test.data?.url === url && !test.isPending && <TestAnswer answer={test.data} />}
        </div>
        <Problem error={test.error} />
      </div>
      <div className={classes.actions}>
        <Action label={words.endpoints.testOf(url)} onClick={() => test.mutate()} isBusy={test.isPending}>
          {words.webhook.test}
        </Action>
        <Action label={words.endpoints.editOf(url)} onClick={onEdit}>
          {words.endpoints.edit}
        </Action>
        {deliveries.retrying > 0 && <Retry endpoint={endpoint} refresh={refresh} />}
        <EndpointActions path={`/endpoints/${id}`} endpoint={endpoint} refresh={refresh} onSecret={onSecret} />
      </div>
    </li>
  )
}

interface RetryProps {
  endpoint: OperatorEndpoint
  refresh: () => Promise<unknown>
}

function Retry({ endpoint: { id, url }, refresh }: RetryProps) {
  const words = useWords()
  const toast = useToast()
  const retry = useAction({
    mutationFn: () => callData<{ count: number }>(`/endpoints/${id}/retry`, { method: 'POST' }),
    onSuccess: async ({ count }) => {
      toast(words.deliveryHealth.retriedAll(count))
      await refresh()
    },
  })
  return (
    <>
      <Action label={words.endpoints.retryOf(url)} onClick={() => retry.mutate()} isBusy={retry.isPending}>
        {words.endpoints.retry}
      </Action>
      <Problem error={retry.error} />
    </>
  )
}
