import { Link } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import type { Conversation, ConversationLine } from '../../api/types.ts'
import { BackIcon } from '../../components/icons.tsx'
import { MessageFile } from '../../components/media/file-preview.tsx'
import { Ticks } from '../../components/ticks.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { conversationName } from './conversation-name.ts'
import classes from './phone.module.css'
import { Reply } from './write.tsx'

interface HandsetProps {
  instanceId: string
  conversation: Conversation
  /** A person begins to write. */
  onWriting: () => void
  onBack: () => void
}

/** One conversation as the phone at the other end shows it. */
export function Handset({ instanceId, conversation, onWriting, onBack }: HandsetProps) {
  const words = useWords()
  const bottom = useRef<HTMLDivElement>(null)
  const count = conversation.lines.length
  const name = conversationName(conversation, words)
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
          <strong dir="auto">{title}</strong>
          {conversation.name && <span className={classes.address}>{conversation.with}</span>}
        </div>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard (WCAG 2.1.1) */}
      <div className={classes.lines} tabIndex={0} role="log" aria-label={conversationName(conversation, words)}>
        {conversation.lines.map(line => (
          <Line key={line.id} line={line} instanceId={instanceId} />
        ))}
        <div ref={bottom} />
      </div>
      <Reply instanceId={instanceId} conversation={conversation} onWriting={onWriting} />
    </section>
  )
}

function Line({ line, instanceId }: { line: ConversationLine; instanceId: string }) {
  const words = useWords()
  const isOut = line.direction === 'out'
  const hasArrived = !isOut || line.status === 'delivered' || line.status === 'read'
  return (
    <div className={classes.line} data-direction={line.direction} data-arrived={hasArrived}>
      {!isOut && line.from && (
        <span className={classes.author} dir="auto">
          {line.name ?? `+${line.from}`}
        </span>
      )}
      {line.mediaId !== null && <MessageFile instanceId={instanceId} mediaId={line.mediaId} />}
      {line.text !== '' && (
        <span className={classes.text} dir="auto">
          {line.text}
        </span>
      )}
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
