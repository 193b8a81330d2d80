import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { connectionQuery, endpointsQuery } from '../../api/queries.ts'
import { useMay } from '../../api/use-role.ts'
import { DeliveryWarning } from '../../components/delivery-health.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { SendForm } from '../messages/send-form.tsx'
import { ConnectionCard } from './connection-card.tsx'
import { FirstSteps } from './first-steps.tsx'
import { FreshToken } from './fresh-token.tsx'
import { HealthCard } from './health-card.tsx'
import { useInstance } from './instance.tsx'
import classes from './overview.module.css'
import { DeliveryCharts } from './statistics/statistics.tsx'

export function Overview() {
  const words = useWords()
  const instance = useInstance()
  const navigate = useNavigate()
  const { data: connection, error, refetch } = useQuery(connectionQuery(instance.id))
  const isOperator = useMay('operator')
  const maySend = isOperator && (instance.state === 'connected' || instance.state === 'reconnecting')
  const [hasForm, setHasForm] = useState(maySend)
  // The form and its text stay while the number is not connected.
  if (maySend && !hasForm) setHasForm(true)
  const retry = () => void refetch()
  const unknown = error ? <Problem error={error} onRetry={retry} /> : <Waiting />
  const state = connection ? <ConnectionCard connection={connection} error={error} onRetry={retry} /> : unknown
  return (
    <>
      <DeliveryWarning instanceId={instance.id} />
      {!maySend && state}
      <div className={classes.pair}>
        {isOperator && hasForm && (
          <Card title={words.send.title}>
            <SendForm
              instance={instance}
              isDisabled={!maySend}
              onSent={id =>
                void navigate({ to: '/instances/$id/messages', params: { id: instance.id }, search: { open: id } })
              }
            />
          </Card>
        )}
        <div className={classes.stack}>
          {maySend && state}
          {isOperator && <FirstSteps instance={instance} />}
          <WebhookCard instanceId={instance.id} />
        </div>
      </div>
      <FreshToken instanceId={instance.id} />
      <DeliveryCharts instanceId={instance.id} />
      <HealthCard instanceId={instance.id} />
    </>
  )
}

function WebhookCard({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { data: endpoints } = useQuery(endpointsQuery(instanceId))
  const isOperator = useMay('operator')
  if (!endpoints) return null
  const isSet = endpoints.length > 0
  return (
    <Card title={words.webhook.title} hint={isSet ? words.webhook.lead : words.events.noUrl}>
      {endpoints.map(({ id, url }) => (
        <p key={id} className={classes.url}>
          {url}
        </p>
      ))}
      {isOperator && (
        <Group>
          <Button
            variant={isSet ? 'default' : 'light'}
            renderRoot={props => <Link to="/instances/$id/webhook" params={{ id: instanceId }} {...props} />}
          >
            {isSet ? words.webhook.test : words.events.setUrl}
          </Button>
        </Group>
      )}
    </Card>
  )
}
