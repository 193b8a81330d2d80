import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useEffect, useRef } from 'react'
import { findChat } from '../../api/find-chat.ts'
import { NOT_LIVE } from '../../api/queries.ts'
import type { InboxChat } from '../../api/types.ts'
import { useLog } from '../../api/use-log.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { useInstance } from '../instance/instance.tsx'
import { ChatList } from './chat-list.tsx'
import { ChatView } from './chat-view.tsx'
import classes from './inbox.module.css'
import type { Named } from './names.ts'

const NO_FILTER = {}
/**
 * How often an open chat outside the loaded list is looked up again: one that has unread messages, because somebody else
 * may read them, and one that is not known yet.
 */
const UNREAD_AGAIN_MS = 5_000
const UNKNOWN_AGAIN_MS = 20_000

/** The list of an instance's conversations, and the open one. A narrow screen shows one of the two at a time. */
export function Inbox() {
  const words = useWords()
  const instance = useInstance()
  const navigate = useNavigate({ from: '/instances/$id/inbox' })
  const { chat, message } = useSearch({ from: '/inside/instances/$id/inbox' })
  const log = useLog<InboxChat>(`chats ${instance.id}`, `/instances/${instance.id}/chats`, NO_FILTER, instance.id)
  const list = useRef<HTMLDivElement>(null)
  const before = useRef<string | undefined>(undefined)
  useEffect(() => {
    // Back from a conversation, the focus returns to where it was opened.
    if (chat === undefined && before.current !== undefined)
      list.current?.querySelector<HTMLElement>(`[data-chat="${CSS.escape(before.current)}"]`)?.focus()
    before.current = chat
  }, [chat])

  const known = log.rows.find(row => row.chat === chat || row.lid === chat)
  const { data: found } = useQuery({
    queryKey: ['chat', instance.id, chat],
    queryFn: ({ signal }) => findChat(instance.id, chat ?? '', signal),
    // This searches all contacts or groups, so it is not repeated at every change. `ChatView` repeats it when a message arrives.
    meta: NOT_LIVE,
    refetchInterval: ({ state: { data } }) =>
      data == null ? UNKNOWN_AGAIN_MS : data.unreadCount ? UNREAD_AGAIN_MS : false,
    enabled: chat !== undefined && known === undefined && log.status !== 'pending',
  })
  const shown: Named | undefined =
    chat === undefined ? undefined : (known ?? found ?? { chat, name: null, username: null })
  const show = useCallback(
    (messageId: string | undefined) =>
      void navigate({ search: now => ({ ...now, message: messageId }), replace: true, resetScroll: false }),
    [navigate],
  )
  return (
    <div className={classes.desk} data-chosen={chat !== undefined}>
      <div className={classes.side} ref={list}>
        <ChatList instanceId={instance.id} log={log} shown={chat} />
      </div>
      {shown && chat !== undefined ? (
        <ChatView
          key={chat}
          instance={instance}
          chat={shown}
          lid={known?.lid ?? found?.lid ?? null}
          unread={known ?? found ?? undefined}
          messageId={message}
          onShow={show}
          onBack={() => void navigate({ search: {}, replace: true, resetScroll: false })}
        />
      ) : (
        <div className={classes.nothing}>
          <h2>{words.inbox.choose}</h2>
          <p>{words.inbox.chooseText}</p>
        </div>
      )}
    </div>
  )
}
