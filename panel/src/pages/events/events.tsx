import { Alert, Button, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import type { DeliveryFilter } from '../../../../src/domain/events/delivery.ts'
import { EVENT_KINDS } from '../../../../src/domain/events/event.ts'
import { endpointsQuery } from '../../api/queries.ts'
import type { EndpointHealth, Event } from '../../api/types.ts'
import { useLog } from '../../api/use-log.ts'
import { useMay } from '../../api/use-role.ts'
import { DeliveryBadge } from '../../components/badges.tsx'
import { RepeatIcon } from '../../components/icons.tsx'
import { stepsOf } from '../../components/log/drawer-page.tsx'
import { ExportCsv } from '../../components/log/export-csv.tsx'
import { FilterBar, TextFilter } from '../../components/log/filters.tsx'
import { Cell, LogList } from '../../components/log/log-list.tsx'
import { RowLink } from '../../components/log/row-link.tsx'
import { SelectionBar, useSelection } from '../../components/log/selection.tsx'
import { Empty, PageHead } from '../../components/panels.tsx'
import { Recipient } from '../../components/recipients/recipient.tsx'
import { Ago, Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useInstance } from '../instance/instance.tsx'
import { DeliveryCharts } from '../instance/statistics/statistics.tsx'
import { EventDrawer } from './event-drawer.tsx'
import classes from './events.module.css'
import { RedeliverMany } from './redeliver-many.tsx'
import { RedeliverMarked } from './redeliver-marked.tsx'

/** In the order of a delivery's life. */
const FILTERS = [
  'pending',
  'retrying',
  'blocked',
  'delivered',
  'exhausted',
  'not_posted',
] as const satisfies readonly DeliveryFilter[]

const COLUMNS = [
  ...['id', 'event', 'timestamp', 'createdAt', 'messageId', 'with', 'endpointId', 'url', 'state', 'attemptCount'],
  'nextAttemptAt',
]

function cellsOf({ id, event, timestamp, createdAt, messageId, with: other, delivery }: Event) {
  const { endpointId, url, state, attemptCount, nextAttemptAt } = delivery ?? {}
  return [id, event, timestamp, createdAt, messageId, other, endpointId, url, state, attemptCount, nextAttemptAt]
}

export function Events() {
  const words = useWords()
  const instance = useInstance()
  const search = useSearch({ from: '/inside/instances/$id/events' })
  const navigate = useNavigate({ from: '/instances/$id/events' })
  const [isRedelivering, setRedelivering] = useState(false)
  const [isCharting, setCharting] = useState(false)
  const { data: endpoints } = useQuery(endpointsQuery(instance.id))
  const { state, kind, endpoint, open } = search
  const query = useMemo(() => ({ state, kind, endpoint }), [state, kind, endpoint])
  const log = useLog<Event>(`events ${instance.id}`, `/instances/${instance.id}/events`, query, instance.id)
  const change = useCallback(
    (changed: Partial<typeof search>, replace = true) =>
      void navigate({ search: before => ({ ...before, ...changed }), replace, resetScroll: false }),
    [navigate],
  )
  const renderRow = useCallback(
    (event: Event) => <EventRow event={event} instanceId={instance.id} onOpen={id => change({ open: id }, false)} />,
    [instance.id, change],
  )
  const selection = useSelection()
  const mayRedeliver = useMay('operator')
  const showNeighbour = useCallback((id: string) => change({ open: id }), [change])
  const steps = useMemo(() => stepsOf(log.rows, open, showNeighbour), [log.rows, open, showNeighbour])

  return (
    <>
      <div>
        <PageHead
          level={2}
          title={words.events.title}
          action={
            <>
              {log.rows.length > 0 && (
                <ExportCsv
                  name={`events-${instance.id}`}
                  path={`/instances/${instance.id}/events`}
                  query={query}
                  columns={COLUMNS}
                  cellsOf={cellsOf}
                />
              )}
              {mayRedeliver && (
                <Button variant="default" leftSection={<RepeatIcon />} onClick={() => setRedelivering(true)}>
                  {words.events.redeliverMany}
                </Button>
              )}
            </>
          }
        >
          {words.events.lead}
        </PageHead>
        {endpoints?.length === 0 && (
          <Alert color="yellow" variant="light" mb="md">
            {words.events.noUrl}{' '}
            {mayRedeliver && (
              <Link to="/instances/$id/webhook" params={{ id: instance.id }}>
                {words.events.setUrl}
              </Link>
            )}
          </Alert>
        )}
        {log.rows.length > 0 && (
          <details className={classes.charts} onToggle={event => setCharting(event.currentTarget.open)}>
            <summary>{words.events.charts}</summary>
            {isCharting && <DeliveryCharts instanceId={instance.id} />}
          </details>
        )}
        <FilterBar active={[state, kind, endpoint].filter(Boolean).length}>
          <Select
            label={words.events.state}
            placeholder={words.common.all}
            value={state ?? null}
            data={FILTERS.map(value => ({ value, label: words.events.states[value] }))}
            onChange={value => change({ state: value ?? undefined })}
            clearable
            clearButtonProps={{ 'aria-label': words.messages.clear }}
          />
          <Select
            label={words.events.kind}
            placeholder={words.common.all}
            value={kind ?? null}
            data={EVENT_KINDS.map(value => ({ value, label: words.events.kinds[value] }))}
            onChange={value => change({ kind: value ?? undefined })}
            clearable
            clearButtonProps={{ 'aria-label': words.messages.clear }}
          />
          {(endpoint || (endpoints && endpoints.length > 1)) && (
            <Select
              label={words.endpoints.filter}
              placeholder={words.common.all}
              value={endpoint ?? null}
              data={choicesOf(endpoints ?? [], endpoint, words.endpoints.gone)}
              onChange={value => change({ endpoint: value ?? undefined })}
              clearable
              clearButtonProps={{ 'aria-label': words.messages.clear }}
            />
          )}
          <TextFilter
            label={words.messages.byId}
            placeholder="evt_…"
            value={undefined}
            onChange={value => value && change({ open: value }, false)}
            onEnter
          />
        </FilterBar>
        <LogList
          log={log}
          label={words.events.title}
          columns={[
            words.events.kind,
            words.events.with,
            words.events.state,
            words.events.attempts,
            words.events.next,
            words.events.when,
          ]}
          template="minmax(0, 1.1fr) minmax(0, 1.2fr) minmax(0, 1fr) minmax(0, 0.6fr) minmax(0, 0.8fr) 130px"
          rowHeight={{ wide: 50, narrow: 72 }}
          renderRow={renderRow}
          {...(mayRedeliver && { selection })}
          empty={
            state || kind || endpoint ? (
              <Empty
                title={words.events.noneFound}
                action={
                  <Button variant="default" onClick={() => void navigate({ search: {} })}>
                    {words.messages.clear}
                  </Button>
                }
              />
            ) : (
              <Empty title={words.events.emptyTitle}>{words.events.emptyText}</Empty>
            )
          }
        />
        <SelectionBar selection={selection}>
          <RedeliverMarked instanceId={instance.id} selection={selection} rows={log.rows} />
        </SelectionBar>
      </div>
      <RedeliverMany instanceId={instance.id} opened={isRedelivering} onClose={() => setRedelivering(false)} />
      <EventDrawer instanceId={instance.id} eventId={open} steps={steps} onClose={() => change({ open: undefined })} />
    </>
  )
}

/** The endpoints to choose from. The chosen one may be gone. */
function choicesOf(endpoints: readonly EndpointHealth[], chosen: string | undefined, gone: string) {
  const choices = endpoints.map(({ id, url, description }) => ({ value: id, label: description ?? url }))
  if (chosen && !choices.some(({ value }) => value === chosen)) choices.push({ value: chosen, label: gone })
  return choices
}

interface EventRowProps {
  event: Event
  instanceId: string
  onOpen: (id: string) => void
}

function EventRow({ event, instanceId, onOpen }: EventRowProps) {
  const words = useWords()
  const { delivery } = event
  const [subject, kind] = event.event.split('.')
  return (
    <>
      <Cell>
        <RowLink href={`/instances/${instanceId}/events?open=${event.id}`} onOpen={() => onOpen(event.id)}>
          <span className={classes.prefix}>{subject}.</span>
          {kind}
        </RowLink>
      </Cell>
      <Cell area="hidden">{event.with && <Recipient to={event.with} />}</Cell>
      <Cell>
        <DeliveryBadge state={delivery?.state ?? null} attempts={delivery?.attemptCount} />
      </Cell>
      <Cell area="hidden">{delivery?.attemptCount || ''}</Cell>
      <Cell area="hidden">
        {delivery?.nextAttemptAt && delivery.attemptCount > 0 && <Ago at={delivery.nextAttemptAt} />}
      </Cell>
      <Cell area="wide">
        <span className={classes.when}>
          {event.with && (
            <span className={classes.narrowOnly}>
              <Recipient to={event.with} /> ·{' '}
            </span>
          )}
          <Time at={event.createdAt} />
          {delivery && delivery.attemptCount > 1 && (
            <span className={classes.narrowOnly}> · {words.message.attempts(delivery.attemptCount)}</span>
          )}
        </span>
      </Cell>
    </>
  )
}
