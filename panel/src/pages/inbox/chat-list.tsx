import { TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type KeyboardEvent as ReactKeyboardEvent, type ReactNode, useMemo, useState } from 'react'
import { addresseesQuery, foundMessagesQuery } from '../../api/queries.ts'
import type { ChatLine, InboxChat } from '../../api/types.ts'
import { type Log, useLog } from '../../api/use-log.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { SearchIcon } from '../../components/icons.tsx'
import { recipientText } from '../../components/recipients/recipient.tsx'
import { Time } from '../../components/time.tsx'
import { useDebounced } from '../../components/use-debounced.ts'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './inbox.module.css'
import { authorOf, chatOf, previewOf } from './lines.ts'
import { chatName, initialOf, type Named } from './names.ts'

const MAX_SEARCH = 64
const MAX_UNREAD = 100
const NUMBER = /^[1-9][0-9]{6,14}$/
/** More conversations are read when less than this is left below, in pixels. */
const READ_AHEAD = 600

interface ChatListProps {
  instanceId: string
  log: Log<InboxChat>
  /** The chat that is open. */
  shown: string | undefined
}

export function ChatList({ instanceId, log, shown }: ChatListProps) {
  const words = useWords()
  const [text, setText] = useState('')
  const search = useDebounced(text.trim())
  return (
    <>
      <TextInput
        className={classes.search}
        type="search"
        aria-label={words.inbox.search}
        placeholder={words.inbox.searchHint}
        leftSection={<SearchIcon size={16} />}
        maxLength={MAX_SEARCH}
        value={text}
        onChange={event => setText(event.currentTarget.value)}
      />
      <nav
        className={classes.list}
        aria-label={words.inbox.chats}
        onKeyDown={moveBetweenEntries}
        onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
          const perPixel = log.rows.length / scrollHeight
          const below = scrollTop + clientHeight
          if (search === '') log.onVisible(Math.floor(scrollTop * perPixel), Math.ceil(below * perPixel))
          if (!log.moreError && scrollHeight - below < READ_AHEAD) log.loadMore()
        }}
      >
        {search === '' ? (
          <Latest instanceId={instanceId} log={log} shown={shown} />
        ) : (
          <Found instanceId={instanceId} search={search} shown={shown} />
        )}
      </nav>
    </>
  )
}

function Latest({ instanceId, log, shown }: ChatListProps) {
  const words = useWords()
  if (log.status === 'pending') return <Waiting />
  if (log.status === 'error' && log.rows.length === 0) return <Problem error={log.error} onRetry={log.retry} />
  return (
    <>
      <Problem error={log.refreshError} text={words.common.outdated} />
      {log.rows.length === 0 && <p className={classes.hint}>{words.inbox.empty}</p>}
      {log.rows.map(chat => (
        <ChatEntry key={chat.chat} instanceId={instanceId} chat={chat} shown={shown} />
      ))}
      <Problem error={log.moreError} onRetry={log.loadMore} />
    </>
  )
}

interface FoundProps {
  instanceId: string
  search: string
  shown: string | undefined
}

/** Chats, groups, contacts and messages that fit the search. */
function Found({ instanceId, search, shown }: FoundProps) {
  const words = useWords()
  const query = useMemo(() => ({ search }), [search])
  const log = useLog<InboxChat>(`found-chats ${instanceId}`, `/instances/${instanceId}/chats`, query, instanceId)
  const { data: people = [] } = useQuery(addresseesQuery(instanceId, search))
  const { data: texts, isFetching, error } = useQuery(foundMessagesQuery(instanceId, search))
  const known = new Set(log.rows.flatMap(({ chat, lid }) => [chat, lid]))
  const others = people.filter(({ id }) => !known.has(id))
  const digits = search.replace(/[\s()+.-]/g, '')
  const isNew = NUMBER.test(digits) && !known.has(digits) && !people.some(({ id }) => id === digits)
  if (log.status === 'pending') return <Waiting />
  return (
    <>
      <Problem error={log.refreshError} text={words.common.outdated} />
      {log.rows.length > 0 && <Heading>{words.inbox.chats}</Heading>}
      {log.rows.map(chat => (
        <ChatEntry key={chat.chat} instanceId={instanceId} chat={chat} shown={shown} />
      ))}
      {(others.length > 0 || isNew) && <Heading>{words.inbox.people}</Heading>}
      {others.map(({ id, name, memberCount }) => (
        <Entry
          key={id}
          instanceId={instanceId}
          chat={{ chat: id, name, username: null }}
          shown={shown}
          text={memberCount === null ? recipientText(id, words) : words.inbox.members(memberCount)}
        />
      ))}
      {isNew && (
        <Entry
          instanceId={instanceId}
          chat={{ chat: digits, name: words.inbox.writeTo(`+${digits}`), username: null }}
          shown={shown}
          text=""
        />
      )}
      {texts && texts.length > 0 && <Heading>{words.inbox.texts}</Heading>}
      {texts?.map(line => (
        <Hit key={line.id} instanceId={instanceId} line={line} />
      ))}
      <div role="status" className={classes.hint}>
        {isFetching && words.inbox.searching}
        {!isFetching && texts?.length === 0 && log.rows.length + people.length === 0 && !isNew && words.inbox.nothing}
      </div>
      <Problem error={error} />
    </>
  )
}

function Heading({ children }: { children: ReactNode }) {
  return <h3 className={classes.heading}>{children}</h3>
}

function ChatEntry({ instanceId, chat, shown }: { instanceId: string; chat: InboxChat; shown: string | undefined }) {
  const words = useWords()
  const { lastMessage, lastMessageAt, unreadCount } = chat
  const isOwn = lastMessage?.direction === 'out'
  const author = lastMessage && chat.chat.endsWith('@g.us') ? authorOf(lastMessage) : null
  return (
    <Entry
      instanceId={instanceId}
      chat={chat}
      shown={shown}
      text={
        lastMessage && (
          <>
            {isOwn && `${words.inbox.you}: `}
            {author !== null && (
              <>
                <bdi>{author}</bdi>:{' '}
              </>
            )}
            <bdi>{previewOf(lastMessage, words)}</bdi>
          </>
        )
      }
      at={lastMessage?.createdAt ?? lastMessageAt}
      unread={unreadCount}
    />
  )
}

interface EntryProps {
  instanceId: string
  chat: Named
  shown: string | undefined
  text: ReactNode
  at?: string
  unread?: number
}

function Entry({ instanceId, chat, shown, text, at, unread = 0 }: EntryProps) {
  const words = useWords()
  return (
    <Link
      to="/instances/$id/inbox"
      params={{ id: instanceId }}
      search={{ chat: chat.chat }}
      className={classes.entry}
      data-chat={chat.chat}
      data-shown={chat.chat === shown}
      resetScroll={false}
    >
      <span className={classes.avatar} aria-hidden>
        {initialOf(chat)}
      </span>
      <span className={classes.entryText}>
        <strong dir="auto">{chatName(chat, words)}</strong>
        <span>{text}</span>
      </span>
      <span className={classes.entrySide}>
        {at && <Time at={at} seconds={false} />}
        {unread > 0 && (
          <span className={classes.unread}>
            <span aria-hidden>{unread >= MAX_UNREAD ? `${MAX_UNREAD}+` : unread}</span>
            <span className="visually-hidden">{words.inbox.unread(unread, unread >= MAX_UNREAD)}</span>
          </span>
        )}
      </span>
    </Link>
  )
}

/** A message that was found by its text. */
function Hit({ instanceId, line }: { instanceId: string; line: ChatLine }) {
  const words = useWords()
  return (
    <Link
      to="/instances/$id/inbox"
      params={{ id: instanceId }}
      search={{ chat: chatOf(line), message: line.id }}
      className={classes.entry}
      resetScroll={false}
    >
      <span className={classes.entryText}>
        <strong dir="auto">
          {line.direction === 'out' ? `${words.inbox.you} → ${recipientText(chatOf(line), words)}` : authorOf(line)}
        </strong>
        <span dir="auto">{previewOf(line, words)}</span>
      </span>
      <span className={classes.entrySide}>
        <Time at={line.createdAt} seconds={false} />
      </span>
    </Link>
  )
}

/** The arrow keys move from entry to entry. */
function moveBetweenEntries(event: ReactKeyboardEvent<HTMLElement>): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('a')]
  const at = links.indexOf(event.target as HTMLElement)
  if (step === 0 || at === -1) return
  event.preventDefault()
  links[at + step]?.focus()
}
