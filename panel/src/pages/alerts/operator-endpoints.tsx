import { Button } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call, callData } from '../../api/client.ts'
import { operatorEndpointsQuery } from '../../api/queries.ts'
import type { OperatorEndpoint, WebhookTest } from '../../api/types.ts'
import { Badge } from '../../components/badges.tsx'
import { CopyField } from '../../components/copy/copy.tsx'
import { formatCount } from '../../components/delivery-health.tsx'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { Card } from '../../components/panels.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { TestAnswer } from '../webhook/test-answer.tsx'
import classes from './alerts.module.css'
import { OperatorDialog } from './operator-dialog.tsx'

/** The endpoints that receive the connection events of all instances. */
export function OperatorEndpoints() {
  const words = useWords()
  const [edited, setEdited] = useState<OperatorEndpoint | 'new' | null>(null)
  const [fresh, setFresh] = useState<string | null>(null)
  const { data: endpoints, error, refetch } = useQuery(operatorEndpointsQuery)
  return (
    <Card
      title={words.operatorEndpoints.title}
      hint={words.operatorEndpoints.hint}
      action={
        <Button variant="default" onClick={() => setEdited('new')}>
          {words.endpoints.add}
        </Button>
      }
    >
      {error && !endpoints && <Problem error={error} onRetry={() => void refetch()} />}
      {endpoints?.length === 0 && <p className={classes.note}>{words.operatorEndpoints.none}</p>}
      <ul className={classes.list}>
        {endpoints?.map(endpoint => (
          <Item
            key={endpoint.id}
            endpoint={endpoint}
            isFresh={endpoint.id === fresh}
            onFresh={isFresh => setFresh(isFresh ? endpoint.id : null)}
            onEdit={() => setEdited(endpoint)}
          />
        ))}
      </ul>
      {edited !== null && (
        <OperatorDialog
          endpoint={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
          onCreated={({ id }) => setFresh(id)}
        />
      )}
    </Card>
  )
}

interface ItemProps {
  endpoint: OperatorEndpoint
  /** Its secret was just created, and is shown. */
  isFresh: boolean
  onFresh: (isFresh: boolean) => void
  onEdit: () => void
}

function Item({ endpoint, isFresh, onFresh, onEdit }: ItemProps) {
  const words = useWords()
  const { id, url, description, events, active, secret, previousSecretUntil, deliveries } = endpoint
  const test = useMutation({
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
        {isFresh && (
          <>
            <CopyField label={words.endpoints.secret} value={secret} />
            <p className={classes.note}>{words.endpoints.secretOnce}</p>
            <Button size="compact-sm" variant="default" onClick={() => onFresh(false)}>
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
          {test.data && !test.isPending && <TestAnswer answer={test.data} />}
        </div>
        <Problem error={test.error} />
      </div>
      <div className={classes.actions}>
        <Button
          variant="default"
          size="compact-sm"
          loading={test.isPending}
          onClick={() => test.mutate()}
          aria-label={words.endpoints.testOf(url)}
        >
          {words.webhook.test}
        </Button>
        <Button variant="default" size="compact-sm" onClick={onEdit} aria-label={words.endpoints.editOf(url)}>
          {words.endpoints.edit}
        </Button>
        <Actions endpoint={endpoint} onSecret={() => onFresh(true)} />
      </div>
    </li>
  )
}

function Actions({
  endpoint: { id, url, active, deliveries },
  onSecret,
}: {
  endpoint: OperatorEndpoint
  onSecret: () => void
}) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [asked, setAsked] = useState<'remove' | 'rotate' | null>(null)
  const refresh = () => client.invalidateQueries(operatorEndpointsQuery)
  const pause = useMutation({
    mutationFn: () => callData(`/endpoints/${id}`, { method: 'PATCH', body: { active: !active } }),
    onSuccess: async () => {
      toast(active ? words.endpoints.pausedNow : words.endpoints.resumedNow)
      await refresh()
    },
  })
  const retry = useMutation({
    mutationFn: () => callData<{ count: number }>(`/endpoints/${id}/retry`, { method: 'POST' }),
    onSuccess: async ({ count }) => {
      toast(words.deliveryHealth.retriedAll(count))
      await refresh()
    },
  })
  async function remove(): Promise<void> {
    await call(`/endpoints/${id}`, { method: 'DELETE' })
    toast(words.endpoints.removed)
    await refresh()
  }
  async function rotate(): Promise<void> {
    await callData(`/endpoints/${id}/secret`, { method: 'POST' })
    await refresh()
    onSecret()
  }
  const isRemoval = asked === 'remove'
  return (
    <>
      {deliveries.retrying > 0 && (
        <Button
          variant="default"
          size="compact-sm"
          loading={retry.isPending}
          onClick={() => retry.mutate()}
          aria-label={words.endpoints.retryOf(url)}
        >
          {words.endpoints.retry}
        </Button>
      )}
      <Button
        variant="default"
        size="compact-sm"
        loading={pause.isPending}
        onClick={() => pause.mutate()}
        aria-label={active ? words.endpoints.pauseOf(url) : words.endpoints.resumeOf(url)}
      >
        {active ? words.endpoints.pause : words.endpoints.resume}
      </Button>
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => setAsked('rotate')}
        aria-label={words.endpoints.rotateOf(url)}
      >
        {words.webhook.rotate}
      </Button>
      <Button
        variant="subtle"
        color="red"
        size="compact-sm"
        onClick={() => setAsked('remove')}
        aria-label={words.endpoints.removeOf(url)}
      >
        {words.endpoints.remove}
      </Button>
      <Problem error={pause.error ?? retry.error} />
      <Confirm
        opened={asked !== null}
        onClose={() => setAsked(null)}
        title={isRemoval ? words.endpoints.removeTitle : words.webhook.rotateTitle}
        action={isRemoval ? words.endpoints.remove : words.webhook.rotate}
        danger={isRemoval}
        onConfirm={isRemoval ? remove : rotate}
      >
        {isRemoval ? words.endpoints.removeText : words.webhook.rotateText}
      </Confirm>
    </>
  )
}
