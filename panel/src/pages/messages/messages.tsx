import { Button, Modal, Select, TextInput } from '@mantine/core'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { MESSAGE_STATES } from '../../../../src/domain/message.ts'
import type { Message } from '../../api/types.ts'
import { useLog } from '../../api/use-log.ts'
import { MessageBadge } from '../../components/badges.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { SendIcon } from '../../components/icons.tsx'
import { FilterBar, TextFilter } from '../../components/log/filters.tsx'
import { Cell, LogList } from '../../components/log/log-list.tsx'
import { RowLink } from '../../components/log/row-link.tsx'
import { Empty, PageHead } from '../../components/panels.tsx'
import { Recipient } from '../../components/recipient.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useInstance } from '../instance/instance.tsx'
import { MessageDrawer } from './message-drawer.tsx'
import classes from './messages.module.css'
import { SendForm } from './send-form.tsx'

const MINUTE_MS = 60_000
const ROUTE = '/inside/instances/$id/messages'

export function Messages() {
  const words = useWords()
  const instance = useInstance()
  const toast = useToast()
  const search = useSearch({ from: ROUTE })
  const navigate = useNavigate({ from: '/instances/$id/messages' })
  const [isSending, setSending] = useState(false)
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
  const sendButton = (
    <Button leftSection={<SendIcon />} onClick={() => setSending(true)}>
      {words.messages.send}
    </Button>
  )
  return (
    <>
      <div>
        <PageHead level={2} title={words.messages.title} action={sendButton}>
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
              <Empty title={words.messages.emptyTitle} action={sendButton}>
                {instance.phone ? words.messages.emptyText : words.messages.emptyUnlinked}
              </Empty>
            )
          }
        />
      </div>
      <Modal
        opened={isSending}
        onClose={() => setSending(false)}
        title={words.send.title}
        closeButtonProps={{ 'aria-label': words.common.close }}
      >
        <SendForm
          instance={instance}
          onSent={id => {
            setSending(false)
            toast(words.send.queued)
            change({ open: id }, false)
          }}
        />
      </Modal>
      <MessageDrawer instanceId={instance.id} messageId={open} onClose={() => change({ open: undefined })} />
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
        <span className={classes.text}>{message.text}</span>
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
        value={toLocal(search.since)}
        onChange={event => change({ since: toIso(event.currentTarget.value) })}
      />
      <TextInput
        label={words.messages.until}
        type="datetime-local"
        value={toLocal(search.until)}
        onChange={event => change({ until: toIso(event.currentTarget.value) })}
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

/** A date field holds a time in the reader's zone. The address holds it in UTC, so that a link means the same everywhere. */
function toLocal(iso: string | undefined): string {
  const at = new Date(toIso(iso) ?? Number.NaN)
  if (Number.isNaN(at.getTime())) return ''
  return new Date(at.getTime() - at.getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16)
}

function toIso(local: string | undefined): string | undefined {
  const at = local ? new Date(local) : null
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : undefined
}
