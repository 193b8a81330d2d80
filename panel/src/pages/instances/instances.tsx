import { Button, Select, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { activityQuery, sessionQuery } from '../../api/queries.ts'
import { serverNow } from '../../api/server-clock.ts'
import type { Activity, Instance } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { type Log, useLog } from '../../api/use-log.ts'
import { useMay } from '../../api/use-role.ts'
import { ConnectionBadge } from '../../components/badges.tsx'
import { Deliveries, troubleOf } from '../../components/delivery-health.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { ArrowIcon, FlaskIcon, InIcon, OutIcon, PhoneIcon, PlusIcon, SearchIcon } from '../../components/icons.tsx'
import { useAppliedText } from '../../components/log/applied-text.ts'
import { Cell, LogList } from '../../components/log/log-list.tsx'
import { RowLink } from '../../components/log/row-link.tsx'
import { Empty, PageHead } from '../../components/panels.tsx'
import { useTitle } from '../../components/title.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { AttentionList } from './attention.tsx'
import { CreateInstance, createInstance } from './create-instance.tsx'
import classes from './instances.module.css'

const SEARCH_AFTER_MS = 250
const SEEN_AFTER_MS = 120
/** The service's limit of instances per request. */
const MAX_ACTIVITY_IDS = 100

export function Instances() {
  const words = useWords()
  const { search, state, sort } = useSearch({ from: '/inside/' })
  const navigate = useNavigate()
  const [isCreating, setCreating] = useState(false)
  const query = useMemo(() => ({ search, state, sort }), [search, state, sort])
  const log = useLog<Instance>('instances', '/instances', query, null)
  const { shown, onVisible } = useShown(log)
  const activity = useActivity(shown)

  useTitle(words.instances.title)

  const isOutdated = log.refreshError !== null
  const renderRow = useCallback(
    (row: Instance) => (
      <InstanceRow
        instance={row}
        isOutdated={isOutdated}
        activity={activity.get(row.id)}
        onOpen={id => void navigate({ to: '/instances/$id', params: { id } })}
      />
    ),
    [activity, isOutdated, navigate],
  )
  const isOwner = useMay('owner')
  const clear = () => void navigate({ to: '/', search: {} })
  const isEmpty = log.status === 'success' && log.rows.length === 0 && !search && !state
  if (isEmpty) return isOwner ? <FirstInstance /> : <Empty level={1} title={words.people.noInstances} />
  return (
    <>
      <PageHead
        title={words.instances.title}
        action={
          isOwner && (
            <Button leftSection={<PlusIcon />} onClick={() => setCreating(true)}>
              {words.instances.create}
            </Button>
          )
        }
      >
        {words.instances.lead}
      </PageHead>
      <AttentionList />
      <Controls />
      <LogList
        log={{ ...log, onVisible }}
        label={words.instances.title}
        columns={[
          words.instances.name,
          words.instances.whatsapp,
          words.instances.number,
          words.instances.traffic,
          words.instances.webhook,
        ]}
        template="minmax(0, 2.2fr) minmax(0, 1.2fr) minmax(0, 1.2fr) minmax(0, 1fr) minmax(0, 1.2fr)"
        rowHeight={{ wide: 66, narrow: 112 }}
        renderRow={renderRow}
        empty={
          <Empty
            title={words.instances.noneFound}
            action={
              <Button variant="default" onClick={clear}>
                {words.instances.clearSearch}
              </Button>
            }
          >
            {search && words.instances.noneFoundText(search)}
          </Empty>
        }
      />
      <CreateInstance opened={isCreating} onClose={() => setCreating(false)} />
    </>
  )
}

/** The visible rows, once scrolling pauses. */
function useShown(log: Log<Instance>) {
  const [seen, setSeen] = useState({ from: 0, to: 0 })
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const { rows, onVisible: onLogVisible } = log
  const onVisible = useCallback(
    (from: number, to: number) => {
      onLogVisible(from, to)
      clearTimeout(timer.current)
      timer.current = setTimeout(() => setSeen({ from, to }), SEEN_AFTER_MS)
    },
    [onLogVisible],
  )
  useEffect(() => () => clearTimeout(timer.current), [])
  const shown = useMemo(() => rows.slice(seen.from, seen.to + 1).slice(0, MAX_ACTIVITY_IDS), [rows, seen])
  return { shown, onVisible }
}

function useActivity(instances: readonly Instance[]): ReadonlyMap<string, Activity> {
  const ids = instances.map(({ id }) => id).join()
  const { data } = useQuery(activityQuery(useMemo(() => (ids ? ids.split(',') : []), [ids])))
  return useMemo(() => new Map(data?.map(entry => [entry.instanceId, entry])), [data])
}

/** The states that the list can be filtered by. The others last only for moments. */
const STATES = ['connected', 'reconnecting', 'disconnected', 'stopped', 'logged_out', 'unlinked'] as const
const ORDERS = ['newest', 'name', 'traffic'] as const

function Controls() {
  const words = useWords()
  const navigate = useNavigate()
  const { search, state, sort } = useSearch({ from: '/inside/' })
  const change = (changed: { state?: string | undefined; sort?: string | undefined }) =>
    void navigate({ to: '/', search: before => ({ ...before, ...changed }), replace: true })
  return (
    <div className={classes.controls}>
      <Search value={search ?? ''} />
      <Select
        aria-label={words.instances.whatsapp}
        placeholder={words.instances.anyState}
        value={STATES.find(one => one === state) ?? null}
        data={STATES.map(value => ({ value, label: words.connection.states[value].name }))}
        onChange={value => change({ state: value ?? undefined })}
        clearable
        clearButtonProps={{ 'aria-label': words.messages.clear }}
      />
      <Select
        aria-label={words.instances.order}
        value={ORDERS.find(one => one === sort) ?? 'newest'}
        data={ORDERS.map(value => ({ value, label: words.instances.orders[value] }))}
        onChange={value => change({ sort: value && value !== 'newest' ? value : undefined })}
        allowDeselect={false}
      />
    </div>
  )
}

function Search({ value }: { value: string }) {
  const words = useWords()
  const navigate = useNavigate()
  const { text, setText } = useAppliedText(
    value,
    search => void navigate({ to: '/', search: before => ({ ...before, search: search || undefined }), replace: true }),
    SEARCH_AFTER_MS,
  )
  return (
    <TextInput
      className={classes.search}
      type="search"
      leftSection={<SearchIcon />}
      aria-label={words.instances.search}
      placeholder={words.instances.search}
      value={text}
      maxLength={100}
      onChange={event => setText(event.currentTarget.value)}
    />
  )
}

interface InstanceRowProps {
  instance: Instance
  /** The list could not be read again. */
  isOutdated: boolean
  activity: Activity | undefined
  onOpen: (id: string) => void
}

function InstanceRow({ instance, isOutdated, activity, onOpen }: InstanceRowProps) {
  const words = useWords()
  return (
    <>
      <Cell>
        <RowLink href={`/instances/${instance.id}`} onOpen={() => onOpen(instance.id)}>
          {instance.name}
        </RowLink>
        <div className={classes.id}>
          {instance.id}
          {instance.kind === 'sandbox' && <span className={classes.kind}>{words.instances.sandbox}</span>}
        </div>
      </Cell>
      <Cell>
        <ConnectionBadge state={instance.state} isOutdated={isOutdated} />
      </Cell>
      <Cell>
        {instance.phone ? (
          <span>+{instance.phone}</span>
        ) : (
          <span className={classes.quiet}>{words.instances.noNumber}</span>
        )}
      </Cell>
      <Cell>{activity && <Traffic activity={activity} />}</Cell>
      <Cell area={activity && troubleOf(activity, serverNow()) ? 'wide' : 'hidden'} label={words.instances.webhook}>
        {activity && <Deliveries activity={activity} />}
      </Cell>
    </>
  )
}

function Traffic({ activity }: { activity: Activity }) {
  const { instances: words } = useWords()
  const { sentLastHour: sent, receivedLastHour: received, failedLastHour: failed, queuedLastHour: queued } = activity
  const hint = words.trafficHint(sent, received, queued)
  return (
    <>
      <span className={classes.traffic} title={hint}>
        <span className="visually-hidden">{hint}</span>
        <span aria-hidden className={classes.traffic}>
          <OutIcon size={14} /> {sent} <InIcon size={14} /> {received}
        </span>
      </span>
      {failed > 0 && (
        <div className={classes.failed}>
          {words.failed(failed, Math.max(1, Math.round((failed / (sent + failed)) * 100)))}
        </div>
      )}
    </>
  )
}

/** The first page of a new user: one click starts a working instance. */
function FirstInstance() {
  const words = useWords()
  const client = useQueryClient()
  const navigate = useNavigate()
  const { data: session } = useQuery(sessionQuery)
  const [isImporting, setImporting] = useState(false)
  const create = useAction(
    {
      mutationFn: (kind: 'sandbox' | 'whatsapp') =>
        createInstance(client, { kind, ...(kind === 'sandbox' && { name: words.instances.sandboxName }) }),
      onSuccess: ({ id }) => navigate({ to: '/instances/$id', params: { id } }),
    },
    { isFinal: true },
  )
  return (
    <div className={classes.first}>
      <Empty level={1} title={words.instances.emptyTitle}>
        {words.instances.emptyText}
      </Empty>
      <div className={classes.choices}>
        {session?.sandbox && (
          <button
            type="button"
            className={classes.choice}
            data-primary
            disabled={create.isPending}
            onClick={() => create.mutate('sandbox')}
          >
            <FlaskIcon size={26} />
            <strong>
              {words.instances.trySandbox} <ArrowIcon />
            </strong>
            <span>{words.instances.trySandboxHint}</span>
            {create.isPending && create.variables === 'sandbox' && <em>{words.instances.creating}</em>}
          </button>
        )}
        <button
          type="button"
          className={classes.choice}
          disabled={create.isPending}
          onClick={() => create.mutate('whatsapp')}
        >
          <PhoneIcon size={26} />
          <strong>
            {words.instances.linkNumber} <ArrowIcon />
          </strong>
          <span>{words.instances.linkNumberHint}</span>
          {create.isPending && create.variables === 'whatsapp' && <em>{words.instances.creating}</em>}
        </button>
      </div>
      <Button variant="subtle" mt="md" onClick={() => setImporting(true)}>
        {words.instances.importSession}
      </Button>
      <CreateInstance opened={isImporting} onClose={() => setImporting(false)} choice="import" />
      <Problem error={create.error} />
    </div>
  )
}
