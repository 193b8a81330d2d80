import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { activityQuery, connectionQuery, statisticsQuery, webhookQuery } from '../api/queries.ts'
import { Card } from '../components/panels.tsx'
import { Ago, useNow } from '../components/time.tsx'
import { Waiting } from '../components/waiting.tsx'
import { useWords } from '../i18n/i18n.tsx'
import { ConnectionCard } from './connection-card.tsx'
import { FreshToken } from './fresh-token.tsx'
import { HealthCard } from './health-card.tsx'
import { useInstance } from './instance.tsx'
import classes from './overview.module.css'
import { SendForm } from './send-form.tsx'
import { DeliveryCharts } from './statistics.tsx'

/** What is younger is on its way, and no reason to look. */
const OWED_AFTER_MS = 10_000
/** The span that the charts begin with: one read serves both. */
const LATELY_HOURS = 24

export function Overview() {
  const words = useWords()
  const instance = useInstance()
  const navigate = useNavigate()
  const { data: connection } = useQuery(connectionQuery(instance.id))
  const accepts = instance.state === 'connected' || instance.state === 'reconnecting'
  return (
    <>
      {connection ? <ConnectionCard connection={connection} /> : <Waiting />}
      <FreshToken instanceId={instance.id} />
      <div className={classes.pair}>
        {accepts && (
          <Card title={words.send.title}>
            <SendForm
              instance={instance}
              onSent={id =>
                void navigate({ to: '/instances/$id/messages', params: { id: instance.id }, search: { open: id } })
              }
            />
          </Card>
        )}
        <WebhookCard instanceId={instance.id} />
      </div>
      <DeliveryCharts instanceId={instance.id} />
      <HealthCard instanceId={instance.id} />
    </>
  )
}

function WebhookCard({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { data: webhook } = useQuery(webhookQuery(instanceId))
  const { data: activity } = useQuery(activityQuery([instanceId]))
  const { data: statistics } = useQuery(statisticsQuery(instanceId, LATELY_HOURS))
  const givenUp = statistics?.buckets.reduce((sum, { exhausted }) => sum + exhausted, 0) ?? 0
  const now = useNow(OWED_AFTER_MS)
  const oldest = activity?.[0]?.oldestUndeliveredAt
  const owedSince = oldest && now - Date.parse(oldest) > OWED_AFTER_MS ? oldest : null
  if (!webhook) return null
  return (
    <Card title={words.webhook.title} hint={webhook.url ? words.webhook.lead : words.events.noUrl}>
      {webhook.url && <p className={classes.url}>{webhook.url}</p>}
      {owedSince && (
        <p className={classes.owed}>
          {words.webhook.owedSince} <Ago at={owedSince} />.{' '}
          <Link to="/instances/$id/events" params={{ id: instanceId }} search={{ state: 'pending' }}>
            {words.webhook.seeWaiting}
          </Link>
        </p>
      )}
      {givenUp > 0 && (
        <p className={classes.givenUp}>
          {words.webhook.givenUp(givenUp)}{' '}
          <Link to="/instances/$id/events" params={{ id: instanceId }} search={{ state: 'exhausted' }}>
            {words.webhook.seeGivenUp}
          </Link>
        </p>
      )}
      <Group>
        <Button
          variant={webhook.url ? 'default' : 'light'}
          renderRoot={props => <Link to="/instances/$id/webhook" params={{ id: instanceId }} {...props} />}
        >
          {webhook.url ? words.webhook.test : words.events.setUrl}
        </Button>
      </Group>
    </Card>
  )
}
