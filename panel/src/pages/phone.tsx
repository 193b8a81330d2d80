import { Button, Modal, Stack, Switch, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { call, callData } from '../api/client.ts'
import { conversationsQuery, phoneQuery } from '../api/queries.ts'
import type { Conversation, ConversationLine, SandboxPhone } from '../api/types.ts'
import { BackIcon, PlusIcon, SendIcon } from '../components/icons.tsx'
import { Empty, PageHead } from '../components/panels.tsx'
import { Problem } from '../components/problem.tsx'
import { Time } from '../components/time.tsx'
import { useToast } from '../components/toasts.tsx'
import { Waiting } from '../components/waiting.tsx'
import type { Words } from '../i18n/en.ts'
import { useWords } from '../i18n/i18n.tsx'
import { useInstance } from './instance.tsx'
import classes from './phone.module.css'

interface Writing {
  from: string
  text: string
  group?: string
  name?: string
}

function useWrite(instanceId: string, onWritten: () => void) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (body: Writing) => call(`/instances/${instanceId}/sandbox/incoming`, { method: 'POST', body }),
    onSuccess: () => {
      onWritten()
      void client.invalidateQueries(conversationsQuery(instanceId))
    },
  })
}

/** The simulated phones of a sandbox instance. Shows the messages to its contacts, and lets the reader write as a contact. */
export function Phone() {
  const words = useWords()
  const instance = useInstance()
  const navigate = useNavigate({ from: '/instances/$id/phone' })
  const { with: chosen } = useSearch({ from: '/inside/instances/$id/phone' })
  const [isWriting, setWriting] = useState(false)
  const {
    data: conversations,
    error,
    refetch,
  } = useQuery({
    ...conversationsQuery(instance.id),
    enabled: instance.kind === 'sandbox',
  })
  if (instance.kind !== 'sandbox') return <Empty title={words.phone.notSandbox} />
  if (error && !conversations) return <Problem error={error} onRetry={() => void refetch()} />
  if (!conversations) return <Waiting />
  const shown =
    conversations.find(conversation => conversation.with === chosen) ?? (chosen ? undefined : conversations[0])
  const choose = (conversation: string | undefined) => void navigate({ search: { with: conversation }, replace: true })
  return (
    <>
      <div>
        <PageHead
          level={2}
          title={words.phone.title}
          action={
            <Button variant="light" leftSection={<PlusIcon />} onClick={() => setWriting(true)}>
              {words.phone.writeAs}
            </Button>
          }
        >
          {words.phone.lead}
        </PageHead>
        <Power instanceId={instance.id} />
        {conversations.length === 0 ? (
          <Empty
            title={words.phone.emptyTitle}
            action={
              <Button renderRoot={props => <Link to="/instances/$id" params={{ id: instance.id }} {...props} />}>
                {words.send.title}
              </Button>
            }
          >
            {words.phone.emptyText}
          </Empty>
        ) : (
          <div className={classes.desk} data-chosen={Boolean(chosen)}>
            <nav className={classes.list} aria-label={words.phone.conversations}>
              {conversations.map(conversation => (
                <Link
                  key={conversation.with}
                  to="/instances/$id/phone"
                  params={{ id: instance.id }}
                  search={{ with: conversation.with }}
                  className={classes.entry}
                  data-shown={conversation === shown}
                  replace
                  resetScroll={false}
                >
                  <span className={classes.avatar} aria-hidden>
                    {conversation.name ? [...conversation.name][0] : conversation.with.replace('@g.us', '').slice(-2)}
                  </span>
                  <span className={classes.entryText}>
                    <strong>{nameOf(conversation, words)}</strong>
                    <span>{conversation.lines.at(-1)?.text}</span>
                  </span>
                </Link>
              ))}
            </nav>
            {shown && <Handset instanceId={instance.id} conversation={shown} onBack={() => choose(undefined)} />}
          </div>
        )}
      </div>
      <WriteModal
        instanceId={instance.id}
        opened={isWriting}
        onClose={() => setWriting(false)}
        onWritten={conversation => {
          setWriting(false)
          choose(conversation)
        }}
      />
    </>
  )
}

function nameOf({ with: address, name }: Conversation, words: Words): string {
  return name ?? (address.endsWith('@g.us') ? `${words.messages.group} ${address.replace('@g.us', '')}` : `+${address}`)
}

function Power({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const client = useQueryClient()
  const { data: phone } = useQuery(phoneQuery(instanceId))
  const change = useMutation({
    mutationFn: (on: boolean) =>
      callData<SandboxPhone>(`/instances/${instanceId}/sandbox/phone`, { method: 'PUT', body: { on } }),
    onSuccess: changed => client.setQueryData(phoneQuery(instanceId).queryKey, changed),
  })
  if (!phone) return null
  return (
    <div className={classes.power} data-on={phone.on}>
      <Switch
        checked={phone.on}
        onChange={event => change.mutate(event.currentTarget.checked)}
        disabled={change.isPending}
        label={phone.on ? words.phone.on : words.phone.off}
      />
      {!phone.on && <span>{words.phone.offText}</span>}
      <Problem error={change.error} />
    </div>
  )
}

interface HandsetProps {
  instanceId: string
  conversation: Conversation
  onBack: () => void
}

function Handset({ instanceId, conversation, onBack }: HandsetProps) {
  const words = useWords()
  const bottom = useRef<HTMLDivElement>(null)
  const count = conversation.lines.length
  const name = nameOf(conversation, words)
  const title = conversation.with.endsWith('@g.us') ? name : words.phone.contactSees(name)
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls after a new line or a change of the conversation
  useEffect(() => {
    const list = bottom.current?.parentElement
    if (list) list.scrollTop = list.scrollHeight
  }, [count, conversation.with])
  return (
    <section className={classes.phone} aria-label={title}>
      <header className={classes.phoneHead}>
        <button type="button" className={classes.back} onClick={onBack} aria-label={words.phone.back}>
          <BackIcon />
        </button>
        <div>
          <strong>{title}</strong>
          {conversation.name && <span className={classes.address}>{conversation.with}</span>}
        </div>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard (WCAG 2.1.1) */}
      <div className={classes.lines} tabIndex={0} role="log" aria-label={nameOf(conversation, words)}>
        {conversation.lines.map(line => (
          <Line key={line.id} line={line} instanceId={instanceId} />
        ))}
        <div ref={bottom} />
      </div>
      <Reply instanceId={instanceId} conversation={conversation} />
    </section>
  )
}

function Line({ line, instanceId }: { line: ConversationLine; instanceId: string }) {
  const words = useWords()
  const isOut = line.direction === 'out'
  const hasArrived = !isOut || line.status === 'delivered' || line.status === 'read'
  return (
    <div className={classes.line} data-direction={line.direction} data-arrived={hasArrived}>
      {!isOut && line.from && <span className={classes.author}>{line.name ?? `+${line.from}`}</span>}
      <span className={classes.text}>{line.text}</span>
      <span className={classes.meta}>
        {!hasArrived && <em>{line.status === 'failed' ? words.phone.neverArrived : words.phone.notArrived}</em>}
        <Time at={line.at} seconds={false} />
        {isOut && line.status && (
          <Link
            to="/instances/$id/messages"
            params={{ id: instanceId }}
            search={{ open: line.id }}
            className={classes.ticks}
            data-status={line.status}
            title={words.phone.ticks[line.status]}
          >
            <Ticks status={line.status} />
            <span className="visually-hidden">
              {words.phone.ticks[line.status]}. {words.phone.openMessage}
            </span>
          </Link>
        )}
        {!isOut && (
          <Link
            to="/instances/$id/events"
            params={{ id: instanceId }}
            search={{ open: line.id }}
            title={words.message.openEvent}
          >
            message.received
          </Link>
        )}
      </span>
    </div>
  )
}

function Ticks({ status }: { status: NonNullable<ConversationLine['status']> }) {
  if (status === 'queued') return <span aria-hidden>◷</span>
  if (status === 'failed') return <span aria-hidden>✕</span>
  return (
    <svg width="18" height="12" viewBox="0 0 18 12" fill="none" stroke="currentColor" strokeWidth="1.7" aria-hidden>
      <path d="m1 6.5 3.5 3.500L11 2" />
      {status !== 'sent' && <path d="m8.5 9.5.6.500L16 2" />}
    </svg>
  )
}

function Reply({ instanceId, conversation }: { instanceId: string; conversation: Conversation }) {
  const words = useWords()
  const toast = useToast()
  const [text, setText] = useState('')
  const write = useWrite(instanceId, () => {
    setText('')
    toast(words.phone.written)
  })
  const isGroup = conversation.with.endsWith('@g.us')
  const from = isGroup ? (conversation.lines.findLast(line => line.from)?.from ?? '5511987654321') : conversation.with
  return (
    <form
      className={classes.reply}
      onSubmit={event => {
        event.preventDefault()
        if (text.trim()) write.mutate({ from, text, ...(isGroup && { group: conversation.with }) })
      }}
    >
      <TextInput
        aria-label={words.phone.reply(isGroup ? `+${from}` : nameOf(conversation, words))}
        placeholder={words.phone.replyPlaceholder}
        value={text}
        onChange={event => setText(event.currentTarget.value)}
        flex={1}
      />
      <Button type="submit" loading={write.isPending} disabled={!text.trim()} leftSection={<SendIcon />}>
        {words.phone.action}
      </Button>
      <div className={classes.replyProblem}>
        <Problem error={write.error} />
      </div>
    </form>
  )
}

interface WriteModalProps {
  instanceId: string
  opened: boolean
  onClose: () => void
  onWritten: (conversation: string) => void
}

function WriteModal({ instanceId, opened, onClose, onWritten }: WriteModalProps) {
  const words = useWords()
  const toast = useToast()
  const [from, setFrom] = useState('5511987654321')
  const [text, setText] = useState('')
  const [group, setGroup] = useState('')
  const [name, setName] = useState('')
  const write = useWrite(instanceId, () => {
    toast(words.phone.written)
    onWritten(group.trim() || from.trim())
    setText('')
  })
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={words.phone.writeAs}
      closeButtonProps={{ 'aria-label': words.common.close }}
    >
      <form
        onSubmit={event => {
          event.preventDefault()
          write.mutate({
            from: from.trim(),
            text,
            ...(group.trim() && { group: group.trim() }),
            ...(name.trim() && { name: name.trim() }),
          })
        }}
      >
        <Stack>
          <TextInput
            label={words.phone.from}
            description={words.phone.fromHint}
            inputMode="numeric"
            value={from}
            onChange={event => setFrom(event.currentTarget.value)}
          />
          <TextInput
            label={words.phone.nameLabel}
            value={name}
            onChange={event => setName(event.currentTarget.value)}
          />
          <TextInput
            label={words.phone.group}
            placeholder={words.phone.groupHint}
            value={group}
            onChange={event => setGroup(event.currentTarget.value)}
          />
          <Textarea
            label={words.phone.text}
            autosize
            minRows={2}
            value={text}
            onChange={event => setText(event.currentTarget.value)}
            data-autofocus
          />
          <Problem error={write.error} />
          <Button type="submit" loading={write.isPending} disabled={!text.trim() || !from.trim()}>
            {words.phone.action}
          </Button>
        </Stack>
      </form>
    </Modal>
  )
}
