import { Button, Group, Progress, SegmentedControl, Select, Stack } from '@mantine/core'
import { type UseMutationResult, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useLayoutEffect, useMemo, useState } from 'react'
import { callData } from '../../api/client.ts'
import { countsQuery, endpointsQuery, notPostedQuery } from '../../api/queries.ts'
import { serverNow } from '../../api/server-clock.ts'
import type { DeliveryCounts } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog } from '../../components/feedback/dialog.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './redeliver-many.module.css'

const HOUR_MS = 3_600_000
/** The service counts up to this number. */
const MAX_COUNTED = 10_000
const RANGES = ['1', '24', '168', '720'] as const
type Range = (typeof RANGES)[number]
/** The range of the warnings that link here. */
const WARNED_OF: Range = '168'
const WHICH = ['exhausted', 'not_posted', 'delivered'] as const
type Which = (typeof WHICH)[number]

interface RedeliverManyProps {
  instanceId: string
  opened: boolean
  onClose: () => void
}

/** Redelivers the events of a time range whose deliveries ended in a given state. Shows their number first, then the progress. */
export function RedeliverMany({ instanceId, opened, onClose }: RedeliverManyProps) {
  const words = useWords()
  const client = useQueryClient()
  const redeliver = useAction(
    {
      mutationFn: async (body: Chosen) => {
        const queued = await callData<{ count: number }>(`/instances/${instanceId}/events/redeliver`, {
          method: 'POST',
          body,
        })
        void client.refetchQueries(countsQuery(instanceId, body.since))
        return { ...queued, queuedAt: Date.now() }
      },
    },
    { isFinal: true },
  )
  const { reset } = redeliver
  useLayoutEffect(() => {
    if (opened) reset()
  }, [opened, reset])
  return (
    <Dialog opened={opened} onClose={onClose} title={words.redeliver.title} isBusy={redeliver.isPending}>
      <Body instanceId={instanceId} redeliver={redeliver} onClose={onClose} />
    </Dialog>
  )
}

interface Chosen {
  since: string
  state: Which
}

interface BodyProps {
  instanceId: string
  redeliver: UseMutationResult<{ count: number; queuedAt: number }, Error, Chosen>
  onClose: () => void
}

function Body({ instanceId, redeliver, onClose }: BodyProps) {
  const words = useWords()
  const [ended, setEnded] = useState<Which>('exhausted')
  const [range, setRange] = useState<Range>(WARNED_OF)
  const since = useMemo(() => new Date(serverNow() - Number(range) * HOUR_MS).toISOString(), [range])
  const { data: endpoints } = useQuery(endpointsQuery(instanceId))
  const { data: counts, dataUpdatedAt, error } = useQuery(countsQuery(instanceId, since))
  const { data: notPosted, error: notPostedError } = useQuery({
    ...notPostedQuery(instanceId, since),
    enabled: ended === 'not_posted',
  })
  const known = ended === 'not_posted' ? notPosted : counts?.[ended]
  const count = known ?? 0

  if (redeliver.data) {
    // An earlier count predates the redeliveries and would show all of them as done.
    const isCounted = dataUpdatedAt >= redeliver.data.queuedAt
    return <Outcome total={redeliver.data.count} counts={isCounted ? counts : undefined} onClose={onClose} />
  }
  if (endpoints?.length === 0) {
    return (
      <Stack>
        <span>{words.redeliver.needsUrl}</span>
        <Group>
          <Button renderRoot={props => <Link to="/instances/$id/webhook" params={{ id: instanceId }} {...props} />}>
            {words.events.setUrl}
          </Button>
        </Group>
      </Stack>
    )
  }
  return (
    <Stack>
      <div>
        <div className={classes.label} id="redeliver-which">
          {words.redeliver.which}
        </div>
        <SegmentedControl
          fullWidth
          classNames={{ label: classes.choice }}
          aria-labelledby="redeliver-which"
          value={ended}
          disabled={redeliver.isPending}
          onChange={value => setEnded(WHICH.find(one => one === value) ?? 'exhausted')}
          data={WHICH.map(value => ({ value, label: words.redeliver[value] }))}
        />
      </div>
      <Select
        label={words.redeliver.since}
        value={range}
        disabled={redeliver.isPending}
        allowDeselect={false}
        data={RANGES.map(value => ({ value, label: words.redeliver.hours[value] }))}
        onChange={value => setRange(RANGES.find(one => one === value) ?? WARNED_OF)}
      />
      {endpoints?.map(({ id, url }) => (
        <div key={id} className={classes.url}>
          <span className={classes.label}>{words.redeliver.url}</span> <code>{url}</code>
        </div>
      ))}
      <p className={classes.hint}>{words.redeliver.explain}</p>
      <p className={classes.count} role="status">
        {known !== undefined && (count === 0 ? words.redeliver.none : words.redeliver.count(formatCount(count)))}
      </p>
      <Problem error={redeliver.error ?? (ended === 'not_posted' ? notPostedError : error)} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose} disabled={redeliver.isPending}>
          {words.common.cancel}
        </Button>
        <Button
          disabled={count === 0}
          loading={redeliver.isPending}
          onClick={() => redeliver.mutate({ since, state: ended })}
        >
          {words.redeliver.action(formatCount(count))}
        </Button>
      </Group>
    </Stack>
  )
}

function formatCount(count: number): string {
  return count >= MAX_COUNTED ? `${MAX_COUNTED}+` : String(count)
}

/** The progress. An event that is no longer pending is done. */
function Outcome({
  total,
  counts,
  onClose,
}: {
  total: number
  counts: DeliveryCounts | undefined
  onClose: () => void
}) {
  const words = useWords()
  const onTheWay = Math.min(total, counts?.redelivering ?? total)
  const done = total - onTheWay
  const isCapped = onTheWay >= MAX_COUNTED && total > MAX_COUNTED
  return (
    <Stack>
      <div role="status">
        {words.redeliver.progress}:{' '}
        {isCapped ? words.redeliver.atLeast(onTheWay, total) : words.redeliver.under(done, total)}
      </div>
      {!isCapped && <Progress value={total === 0 ? 100 : (done / total) * 100} aria-label={words.redeliver.progress} />}
      {counts && (
        <p className={classes.hint}>
          {words.redeliver.onTheWay(formatCount(onTheWay))} · {words.redeliver.failed(formatCount(counts.exhausted))}
        </p>
      )}
      {onTheWay === 0 && <strong>{words.redeliver.done}</strong>}
      <Group justify="flex-end">
        <Button onClick={onClose}>{words.common.close}</Button>
      </Group>
    </Stack>
  )
}
