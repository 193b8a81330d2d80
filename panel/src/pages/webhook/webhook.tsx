import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { DEFAULT_ENDPOINT, MAX_ENDPOINTS } from '../../../../src/domain/events/endpoint.ts'
import { endpointsQuery } from '../../api/queries.ts'
import type { EndpointHealth } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { ReadProblem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { GuideLink } from '../../components/guide-link.tsx'
import { PlusIcon } from '../../components/icons.tsx'
import { Card, PageHead } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useInstance } from '../instance/instance.tsx'
import { EndpointCard } from './endpoint-card.tsx'
import { EndpointDialog } from './endpoint-dialog.tsx'
import { FirstUrl } from './first-url.tsx'
import { Snippets } from './snippets.tsx'
import classes from './webhook.module.css'

interface FreshSecret {
  endpointId: string
  secret: string
}

/** The endpoints of an instance. */
export function WebhookPage() {
  const words = useWords()
  const instance = useInstance()
  const isOwner = useMay('owner')
  const isOperator = useMay('operator')
  const [editing, setEditing] = useState<EndpointHealth | 'new' | null>(null)
  /** Shown until the reader has copied it. Only this page's memory holds it. */
  const [fresh, setFresh] = useState<FreshSecret | null>(null)
  const { data: endpoints, error, refetch } = useQuery(endpointsQuery(instance.id))
  const problem = <ReadProblem data={endpoints} error={error} refetch={refetch} />
  if (!endpoints) return error ? problem : <Waiting />
  const mayAdd = isOwner && endpoints.length > 0 && endpoints.length < MAX_ENDPOINTS
  return (
    <>
      <div className={classes.headOnly}>
        <PageHead
          level={2}
          title={words.webhook.title}
          action={
            mayAdd && (
              <Button leftSection={<PlusIcon />} onClick={() => setEditing('new')}>
                {words.endpoints.add}
              </Button>
            )
          }
        >
          {words.webhook.lead} <GuideLink to="webhooks" />
        </PageHead>
      </div>
      {problem}
      {endpoints.length === 0 && isOperator && (
        <FirstUrl
          instanceId={instance.id}
          onSet={({ secret }) => setFresh(secret === null ? null : { endpointId: DEFAULT_ENDPOINT, secret })}
        />
      )}
      {endpoints.map(endpoint => (
        <EndpointCard
          key={endpoint.id}
          endpoint={endpoint}
          isOutdated={error !== null}
          secret={fresh?.endpointId === endpoint.id ? fresh.secret : undefined}
          onSecret={secret => setFresh(secret === undefined ? null : { endpointId: endpoint.id, secret })}
          onEdit={() => setEditing(endpoint)}
        />
      ))}
      {editing !== null && (
        <EndpointDialog
          instanceId={instance.id}
          endpoint={editing === 'new' ? null : editing}
          onClose={() => setEditing(null)}
          onCreated={({ id, secret }) => setFresh({ endpointId: id, secret })}
        />
      )}
      <Card title={words.webhook.verify} hint={words.webhook.verifyHint}>
        <Snippets />
      </Card>
    </>
  )
}
