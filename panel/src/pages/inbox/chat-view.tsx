import { Button } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Fragment, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { call, callData } from '../../api/client.ts'
import type { ChatEntry, ChatLine, InboxChat, Instance } from '../../api/types.ts'
import { changeUnsent, moveUnsent, usePlaces, useSentId } from '../../api/unsent.ts'
import { useLog } from '../../api/use-log.ts'
import { useMay } from '../../api/use-role.ts'
import { CopyIconButton } from '../../components/copy/copy.tsx'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { BackIcon, CheckIcon } from '../../components/icons.tsx'
import { recipientText } from '../../components/recipients/recipient.tsx'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'
import { useTimeZone } from '../../text/time-zone.ts'
import { Bubble } from './bubble.tsx'
import { Composer, type Writing } from './composer.tsx'
import { dayOf, dayText } from './days.ts'
import classes from './inbox.module.css'
import { linesOf, type ShownLine, startOf } from './lines.ts'
import { chatName, type Named } from './names.ts'
import { type Search, useScroll } from './use-scroll.ts'

interface ChatViewProps {
  instance: Instance
  chat: Named
  /** The person's LID address. Until the number is known, the chat is named by it. */
  lid: string | null
  /** Undefined until the chat is found. */
  unread: Pick<InboxChat, 'unreadCount' | 'lastReceivedId'> | undefined
  /** The message to show. */
  messageId: string | undefined
  onShow: (messageId: string | undefined) => void
  onBack: () => void
}

export function ChatView({ instance, chat, lid, unread, messageId, onShow, onBack }: ChatViewProps) {
  const words = useWords()
  const { language } = useLanguage()
  const zone = useTimeZone()
  const mayWrite = useMay('operator')
  const placeOf = usePlaces(instance.id)
  const place = placeOf(`chat ${chat.chat}`)
  useLayoutEffect(() => {
    if (lid !== null) moveUnsent(placeOf(`chat ${lid}`), place)
  }, [placeOf, lid, place])
  const [edited, setEdited] = useState<ChatLine | null>(null)
  const [removing, setRemoving] = useState<string | null>(null)
  const query = useMemo(() => ({ chat: chat.chat }), [chat.chat])
  const path = `/instances/${instance.id}`
  const log = useLog<ChatEntry>(`conversation ${instance.id}`, `${path}/conversation`, query, instance.id)
  const lines = useLines(log.rows)
  const days = useMemo(() => lines.map(({ line }) => dayOf(line.createdAt, zone)), [lines, zone])
  const byId = useMemo(() => new Map(lines.map(({ line }) => [line.id, line])), [lines])
  const { box, onScroll, search } = useScroll(log, lines, messageId, useSentId(place))
  const removedLine = byId.get(removing ?? '')
  const name = chatName(chat, words)
  /** The newest received message. Reactions are not among the lines. */
  const received = lines.findLast(({ line }) => line.direction === 'in')?.line.id
  useFoundAgain(instance.id, received)
  const write = useCallback(
    ({ kind, line }: Writing) => {
      setEdited(kind === 'edit' ? line : null)
      if (kind === 'reply') changeUnsent(place, { quote: line })
    },
    [place],
  )
  const head = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (!mayWrite) head.current?.focus()
  }, [mayWrite])

  return (
    <section className={classes.chat} aria-label={name}>
      <header className={classes.head}>
        <button type="button" className={classes.back} onClick={onBack} aria-label={words.inbox.back}>
          <BackIcon />
        </button>
        <div className={classes.headText}>
          <h2 ref={head} tabIndex={-1} dir="auto">
            {name}
          </h2>
          <span className={classes.address}>
            {recipientText(chat.chat, words)}
            <CopyIconButton value={chat.chat} what={words.inbox.chatId} />
          </span>
        </div>
        {mayWrite && lines.some(({ line }) => 'media' in line) && (
          <EraseFiles instanceId={instance.id} chat={chat.chat} />
        )}
        {mayWrite && unread && unread.unreadCount > 0 && (
          <MarkRead instanceId={instance.id} messageId={received ?? unread.lastReceivedId} />
        )}
      </header>
      <Problem error={log.refreshError} text={words.common.outdated} />
      <Sought search={search} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard (WCAG 2.1.1) */}
      <div className={classes.scroller} ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-label={name}>
        <div className={classes.lines}>
          {log.moreError && <Problem error={log.moreError} onRetry={log.loadMore} />}
          {log.hasMore && !log.moreError && (
            <Button variant="subtle" size="compact-sm" onClick={log.loadMore}>
              {words.inbox.older}
            </Button>
          )}
          {log.status === 'pending' && <Waiting />}
          {log.status === 'error' && lines.length === 0 && <Problem error={log.error} onRetry={log.retry} />}
          {log.status === 'success' && !log.hasMore && (
            <p className={classes.hint}>{lines.length === 0 ? words.inbox.none : words.inbox.start}</p>
          )}
          {lines.map((shown, index) => {
            const isNewDay = days[index] !== days[index - 1]
            return (
              <Fragment key={shown.line.id}>
                {isNewDay && <h3 className={classes.day}>{dayText(shown.line.createdAt, zone, language)}</h3>}
                <Bubble
                  instance={instance}
                  shown={shown}
                  place={place}
                  original={byId.get(shown.line.quote?.messageId ?? '')}
                  isSought={shown.line.id === messageId}
                  mayWrite={mayWrite}
                  onShow={onShow}
                  onWriting={write}
                  onRemove={setRemoving}
                />
              </Fragment>
            )
          })}
        </div>
      </div>
      {mayWrite ? (
        <Composer
          key={edited?.id}
          instanceId={instance.id}
          chat={chat.chat}
          name={name}
          place={place}
          edited={edited}
          onEdited={() => setEdited(now => (now === edited ? null : now))}
        />
      ) : (
        <p className={classes.hint}>{words.inbox.readOnly}</p>
      )}
      <Confirm
        opened={removing !== null}
        onClose={() => setRemoving(null)}
        title={words.inbox.removeTitle}
        action={words.inbox.remove}
        danger
        onConfirm={() => call(`${path}/messages/${removing}`, { method: 'DELETE' })}
      >
        {removedLine && (
          <p className={classes.text} dir="auto">
            {startOf(removedLine, words)}
          </p>
        )}
        {words.inbox.removeText}
      </Confirm>
    </section>
  )
}

/** The lines of the loaded entries. Those that did not change stay the same objects, so that they are not drawn again. */
function useLines(entries: readonly ChatEntry[]): ShownLine[] {
  const before = useRef<readonly ShownLine[]>([])
  const lines = useMemo(() => linesOf(entries, before.current), [entries])
  useEffect(() => {
    before.current = lines
  }, [lines])
  return lines
}

/** When a message was received, reads the unread count again if the chat is not in the loaded list. */
function useFoundAgain(instanceId: string, received: string | undefined): void {
  const client = useQueryClient()
  const before = useRef(received)
  useEffect(() => {
    if (before.current !== undefined && before.current !== received)
      void client.invalidateQueries({ queryKey: ['chat', instanceId] })
    before.current = received
  }, [client, instanceId, received])
}

/** The state of the search for a message that is not loaded yet. */
function Sought({ search: { state, searchFurther } }: { search: Search }) {
  const words = useWords()
  return (
    <>
      <div role="status" className={classes.hint}>
        {state === 'running' && words.inbox.searching}
        {state === 'missing' && words.inbox.missing}
        {state === 'further' && words.inbox.further}
      </div>
      {state === 'further' && (
        <Button variant="subtle" size="compact-sm" onClick={searchFurther}>
          {words.inbox.searchFurther}
        </Button>
      )}
      {state instanceof Error && <Problem error={state} />}
    </>
  )
}

function EraseFiles({ instanceId, chat }: { instanceId: string; chat: string }) {
  const words = useWords()
  const client = useQueryClient()
  const toast = useToast()
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <Button variant="subtle" color="gray" size="compact-sm" onClick={() => setAsking(true)}>
        {words.inbox.eraseFiles}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={words.inbox.eraseFilesTitle}
        action={words.files.erase}
        danger
        onConfirm={async () => {
          const path = `/instances/${instanceId}/chats/${encodeURIComponent(chat)}/media`
          const { erased } = await callData<{ erased: number }>(path, { method: 'DELETE' })
          toast(words.inbox.filesErased(erased))
          void client.invalidateQueries({ queryKey: ['medium', instanceId] })
        }}
      >
        {words.inbox.eraseFilesText}
      </Confirm>
    </>
  )
}

function MarkRead({ instanceId, messageId }: { instanceId: string; messageId: string | null }) {
  const words = useWords()
  const client = useQueryClient()
  const mark = useMutation({
    mutationFn: () => call(`/instances/${instanceId}/messages/${messageId}/read`, { method: 'POST' }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['chat', instanceId] }),
  })
  return (
    <>
      {messageId !== null && (
        <Button
          variant="light"
          size="compact-sm"
          leftSection={<CheckIcon size={15} />}
          loading={mark.isPending}
          title={words.inbox.markReadText}
          onClick={() => mark.mutate()}
        >
          {words.inbox.markRead}
        </Button>
      )}
      <Problem error={mark.error} />
    </>
  )
}
