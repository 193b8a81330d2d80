import { Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../../api/client.ts'
import { keysQuery } from '../../../api/queries.ts'
import { serverNow } from '../../../api/server-clock.ts'
import type { ApiKey } from '../../../api/types.ts'
import { Confirm } from '../../../components/feedback/confirm.tsx'
import { ReadProblem } from '../../../components/feedback/problem.tsx'
import { useToast } from '../../../components/feedback/toasts.tsx'
import { Card } from '../../../components/panels.tsx'
import { Ago, Time } from '../../../components/time.tsx'
import { useWords } from '../../../i18n/i18n.tsx'
import { CreateKey } from './create-key.tsx'
import classes from './keys.module.css'

/** The named keys of an instance: list, creation, revocation. */
export function Keys({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const [isCreating, setCreating] = useState(false)
  const { data, error, refetch } = useQuery(keysQuery(instanceId))
  return (
    <Card
      title={words.keys.title}
      hint={words.keys.hint}
      action={
        <Button variant="default" onClick={() => setCreating(true)}>
          {words.keys.create}
        </Button>
      }
    >
      <CreateKey instanceId={instanceId} opened={isCreating} onClose={() => setCreating(false)} />
      <ReadProblem data={data} error={error} refetch={refetch} />
      {data && data.length > 0 && (
        <ul className={classes.keys}>
          {data.map(key => (
            <Key key={key.id} instanceId={instanceId} apiKey={key} />
          ))}
        </ul>
      )}
    </Card>
  )
}

function Key({ instanceId, apiKey }: { instanceId: string; apiKey: ApiKey }) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  const { id, name, prefix, scopes, expiresAt, lastUsedAt } = apiKey
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= serverNow()
  return (
    <li>
      <div>
        <strong>{name}</strong> <code>{prefix}…</code>
        {isExpired && <span className={classes.expired}>{words.keys.expired}</span>}
        <div className={classes.about}>{scopes.map(scope => words.keys.scopes[scope]).join(', ')}</div>
        <div className={classes.about}>
          {lastUsedAt ? (
            <>
              {words.keys.lastUsed} <Ago at={lastUsedAt} />
            </>
          ) : (
            words.keys.neverUsed
          )}
          {expiresAt && (
            <>
              {' · '}
              {isExpired ? words.keys.expiredAt : words.keys.expires} <Time at={expiresAt} seconds={false} />
            </>
          )}
        </div>
      </div>
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => setAsking(true)}
        aria-label={words.keys.revokeLabel(name)}
      >
        {words.keys.revoke}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={words.keys.revokeTitle(name)}
        action={words.keys.revoke}
        danger
        onConfirm={async () => {
          await call(`/instances/${instanceId}/keys/${id}`, { method: 'DELETE' })
          void client.invalidateQueries(keysQuery(instanceId))
          toast(words.keys.revoked)
        }}
      >
        {words.keys.revokeText}
      </Confirm>
    </li>
  )
}
