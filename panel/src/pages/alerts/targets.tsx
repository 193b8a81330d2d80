import { Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call, callData } from '../../api/client.ts'
import { alertTargetsQuery } from '../../api/queries.ts'
import type { AlertTarget } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { useMay } from '../../api/use-role.ts'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem, ReadProblem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Card } from '../../components/panels.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { AddTarget, channelName } from './add-target.tsx'
import classes from './alerts.module.css'

/** The people and programs that alerts are sent to. */
export function Targets() {
  const words = useWords()
  const [isAdding, setAdding] = useState(false)
  const isOwner = useMay('owner')
  const { data: targets, error, refetch } = useQuery(alertTargetsQuery)
  return (
    <Card
      title={words.alerts.targets}
      hint={words.alerts.targetsHint}
      action={
        isOwner && (
          <Button variant="default" onClick={() => setAdding(true)}>
            {words.alerts.add}
          </Button>
        )
      }
    >
      <ReadProblem data={targets} error={error} refetch={refetch} />
      {targets?.length === 0 && <p className={classes.note}>{words.alerts.noTargets}</p>}
      <ul className={classes.list}>
        {targets?.map(target => (
          <Target key={target.id} target={target} />
        ))}
      </ul>
      <AddTarget opened={isAdding} onClose={() => setAdding(false)} />
    </Card>
  )
}

function Target({ target }: { target: AlertTarget }) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [isRemoving, setRemoving] = useState(false)
  const { id, name, channel, address, lastSentAt, failures, lastError } = target
  const test = useAction({
    mutationFn: () => callData<{ error: string | null }>(`/alerts/targets/${id}/test`, { method: 'POST' }),
    onSuccess: result => {
      if (result.error === null) toast(words.alerts.tested)
    },
  })
  async function remove(): Promise<void> {
    await call(`/alerts/targets/${id}`, { method: 'DELETE' })
    toast(words.alerts.removed)
    void client.invalidateQueries(alertTargetsQuery)
  }
  return (
    <li>
      <div>
        <strong>{name}</strong>{' '}
        <span className={classes.note}>
          {channelName(channel, words)}, {address}
        </span>
        <div className={classes.note}>
          {lastSentAt === null ? (
            words.alerts.never
          ) : (
            <>
              {words.alerts.lastSent}: <Time at={lastSentAt} seconds={false} />
            </>
          )}
        </div>
        {failures > 0 && (
          <div className={classes.bad}>
            {words.alerts.failing(failures)} <span lang="en">{lastError}</span>
          </div>
        )}
        {test.data?.error && (
          <Notice tone="bad" title={words.alerts.failed}>
            <span lang="en">{test.data.error}</span>
          </Notice>
        )}
        <Problem error={test.error} />
      </div>
      <div className={classes.actions}>
        <Button
          variant="default"
          size="compact-sm"
          loading={test.isPending}
          onClick={() => test.mutate()}
          aria-label={words.alerts.testOf(name)}
        >
          {words.alerts.test}
        </Button>
        <Button
          variant="subtle"
          color="red"
          size="compact-sm"
          onClick={() => setRemoving(true)}
          aria-label={words.alerts.removeOf(name)}
        >
          {words.alerts.remove}
        </Button>
      </div>
      <Confirm
        opened={isRemoving}
        onClose={() => setRemoving(false)}
        title={words.alerts.removeOf(name)}
        action={words.alerts.remove}
        danger
        onConfirm={remove}
      >
        {words.alerts.removeText}
      </Confirm>
    </li>
  )
}
