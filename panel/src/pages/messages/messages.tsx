import { Button, Modal, Select, TextInput } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { MESSAGE_STATES } from '../../../../src/domain/message.ts'
import type { Message, MessageLife } from '../../api/types.ts'
import { useLog } from '../../api/use-log.ts'
import { useMay } from '../../api/use-role.ts'
import { MessageBadge } from '../../components/badges.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { SendIcon } from '../../components/icons.tsx'
import { stepsOf } from '../../components/log/drawer-page.tsx'
import { ExportCsv } from '../../components/log/export-csv.tsx'
import { FilterBar, TextFilter } from '../../components/log/filters.tsx'
import { Cell, LogList } from '../../components/log/log-list.tsx'
import { RowLink } from '../../components/log/row-link.tsx'
import { SelectionBar, useSelection } from '../../components/log/selection.tsx'
import { Empty, PageHead } from '../../components/panels.tsx'
import { Recipient } from '../../components/recipients/recipient.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { fromZoned, toZoned, useTimeZone } from '../../text/time-zone.ts'
import { useInstance } from '../instance/instance.tsx'
import { MessageDrawer } from './message-drawer.tsx'
import classes from './messages.module.css'
import { type Draft, SendForm } from './send-form.tsx'
import { SendMarkedAgain } from './send-marked-again.tsx'
import { shownText } from './shown-text.ts'

const ROUTE = '/inside/instances/$id/messages'
const COLUMNS = [
  'id',
  'status',
  'to',
  'text',
  'createdAt',
  'sentAt',
  'deliveredAt',
  'readAt',
  'failedAt',
  'error',
] as const

function cellsOf(message: Message) {
  return COLUMNS.map(column => (column === 'error' ? message.error?.code : message[column]))
}

export function Messages() {
  const words = useWords()
  const instance = useInstance()
  const toast = useToast()
  const maySend = useMay('operator')
  const search = useSearch({ from: ROUTE })
  const navigate = useNavigate({ from: '/instances/$id/messages' })
  const [draft, setDraft] = useState<Draft>({})
  const [isWriting, setWriting] = useState(false)
  const { state, search: wanted, since, until, open } = search
  const isFiltered = Boolean(state || wanted || since || until)
  const query = useMemo(
    () => ({ state, search: wanted, since: toIso(since), until: toIso(until) }),
    [state, wanted, since, until],
  )
  const log = useLog<Message>(`messages ${instance.id}`, `/instances/${instance.id}/messages`, query, instance.id)

  const change = useCallback(
    (changed: Partial<typeof search>, replace = true) =>
      void navigate({ search: before => ({ ...before, ...changed }), replace, resetScroll: false }),
    [navigate],
  )
  const renderRow = useCallback(
    (message: Message) => (
      <MessageRow message={message} instanceId={instance.id} onOpen={id => change({ open: id }, false)} />
    ),
    [instance.id, change],
  )
  const selection = useSelection()
  const write = (of: Draft) => {
    setDraft(of)
    setWriting(true)
  }
  const sendButton = (
    <Button leftSection={<SendIcon />} onClick={() => write({})}>
      {words.messages.send}
    </Button>
  )
  const showNeighbour = useCallback((id: string) => change({ open: id }), [change])
  const steps = useMemo(() => stepsOf(log.rows, open, showNeighbour), [log.rows, open, showNeighbour])
  const sendAgain = (message: MessageLife) => {
    change({ open: undefined })
    write({ after: message })
  }
  return (
    <>
      <div>
        <PageHead
          level={2}
          title={words.messages.title}
          action={
            <>
              {log.rows.length > 0 && (
                <ExportCsv
                  name={`messages-${instance.id}`}
                  path={`/instances/${instance.id}/messages`}
                  query={query}
                  columns={COLUMNS}
                  cellsOf={cellsOf}
                />
              )}
              {maySend && sendButton}
            </>
          }
        >
          {words.messages.lead}
        </PageHead>
        <Filters search={search} change={change} />
        <LogList
          log={log}
          label={words.messages.title}
          columns={[words.messages.to, words.messages.text, words.messages.state, words.messages.when]}
          template="minmax(0, 215px) minmax(0, 1fr) 130px 150px"
          rowHeight={{ wide: 50, narrow: 72 }}
          renderRow={renderRow}
          {...(maySend && { selection })}
          empty={
            isFiltered ? (
              <Empty
                title={words.messages.noneFound}
                action={
                  <Button variant="default" onClick={() => void navigate({ search: {} })}>
                    {words.messages.clear}
                  </Button>
                }
              />
            ) : (
              <Empty title={words.messages.emptyTitle} action={maySend && sendButton}>
                {instance.phone ? words.messages.emptyText : words.messages.emptyUnlinked}
              </Empty>
            )
          }
        />
        <SelectionBar selection={selection}>
          <SendMarkedAgain instanceId={instance.id} selection={selection} rows={log.rows} />
        </SelectionBar>
      </div>
      <Modal
        opened={isWriting}
        onClose={() => setWriting(false)}
        title={draft.after ? words.tools.againTitle : words.send.title}
        closeButtonProps={{ 'aria-label': words.common.close }}
      >
        <SendForm
          key={draft.after?.id}
          instance={instance}
          draft={draft}
          onSent={id => {
            setWriting(false)
            toast(words.send.queued)
            change({ open: id }, false)
          }}
        />
      </Modal>
      <MessageDrawer
        instanceId={instance.id}
        messageId={open}
        steps={steps}
        onClose={() => change({ open: undefined })}
        onSendAgain={maySend ? sendAgain : undefined}
      />
    </>
  )
}

interface MessageRowProps {
  message: Message
  instanceId: string
  onOpen: (id: string) => void
}

function MessageRow({ message, instanceId, onOpen }: MessageRowProps) {
  const words = useWords()
  return (
    <>
      <Cell>
        <RowLink href={`/instances/${instanceId}/messages?open=${message.id}`} onOpen={() => onOpen(message.id)}>
          <Recipient to={message.to} />
        </RowLink>
      </Cell>
      <Cell area="wide">
        <span className={classes.text} dir="auto">
          {shownText(message)}
        </span>
      </Cell>
      <Cell>
        <MessageBadge state={message.status} />
      </Cell>
      <Cell area="hidden" label={words.messages.when}>
        <span className={classes.when}>
          <Time at={message.createdAt} />
        </span>
      </Cell>
    </>
  )
}

interface FiltersProps {
  search: { state?: string; search?: string; since?: string; until?: string; open?: string }
  change: (changed: Partial<FiltersProps['search']>, replace?: boolean) => void
}

function Filters({ search, change }: FiltersProps) {
  const words = useWords()
  const zone = useTimeZone()
  return (
    <FilterBar active={[search.state, search.search, search.since, search.until].filter(Boolean).length}>
      <Select
        label={words.messages.state}
        value={search.state ?? null}
        placeholder={words.common.all}
        data={MESSAGE_STATES.map(value => ({ value, label: words.messages.states[value] }))}
        onChange={value => change({ state: value ?? undefined })}
        clearable
        clearButtonProps={{ 'aria-label': words.messages.clear }}
      />
      <TextFilter
        label={words.messages.searchFilter}
        placeholder={words.messages.searchHint}
        value={search.search}
        onChange={value => change({ search: value })}
      />
      <TextInput
        label={words.messages.since}
        type="datetime-local"
        value={toZoned(search.since, zone)}
        onChange={event => change({ since: fromZoned(event.currentTarget.value, zone) })}
      />
      <TextInput
        label={words.messages.until}
        type="datetime-local"
        value={toZoned(search.until, zone)}
        onChange={event => change({ until: fromZoned(event.currentTarget.value, zone) })}
      />
      <TextFilter
        label={words.messages.byId}
        placeholder={words.messages.byIdPlaceholder}
        value={undefined}
        onChange={value => value && change({ open: value }, false)}
        onEnter
      />
    </FilterBar>
  )
}

/** The moment in UTC, so that a link means the same everywhere. Undefined if the text is not a valid time. */
function toIso(text: string | undefined): string | undefined {
  const at = text ? new Date(text) : null
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : undefined
}
