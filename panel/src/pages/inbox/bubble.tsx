import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { memo, useState } from 'react'
import type { ChatLine } from '../../api/types.ts'
import { MessageFile } from '../../components/media/file-preview.tsx'
import { Ticks } from '../../components/ticks.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { BubbleMenu, type BubbleMenuProps } from './bubble-menu.tsx'
import classes from './inbox.module.css'
import {
  authorOf,
  cutText,
  type DeliveredLine,
  isSent,
  previewOf,
  type SentLine,
  type ShownLine,
  type ShownReaction,
} from './lines.ts'

/** A contact may send 16 MiB of text, which a browser draws only slowly. */
const MAX_TEXT = 10_000

interface BubbleProps extends BubbleMenuProps {
  /** The message that it quotes, if that is loaded. */
  original: ChatLine | undefined
  /** True if the chat view's `messageId` names this message. */
  isSought: boolean
  onShow: (messageId: string) => void
}

/** One message, with its reactions and changes. */
export const Bubble = memo(function Bubble(props: BubbleProps) {
  const { instance, shown, original, isSought, onShow } = props
  const words = useWords()
  const { line, reactions, pending } = shown
  const author = line.direction === 'in' && line.group !== null ? authorOf(line) : null
  const text = line.text ?? ''
  return (
    <article
      className={classes.line}
      data-direction={line.direction}
      data-sought={isSought}
      data-message={line.id}
      tabIndex={-1}
    >
      <BubbleMenu {...props} />
      {author !== null && (
        <span className={classes.author} dir="auto">
          {author}
        </span>
      )}
      {line.deletedAt === null ? (
        <>
          <Quote line={line} instance={instance} original={original} onShow={onShow} />
          {line.media && <MessageFile instanceId={instance.id} mediaId={line.media.id} />}
          {!isSent(line) && <Content line={line} />}
          {text !== '' && <Text text={text} />}
        </>
      ) : (
        <em className={classes.muted}>{words.inbox.deleted}</em>
      )}
      <span className={classes.meta}>
        {pending === 'edit' && <em>{words.inbox.editing}</em>}
        {pending === 'delete' && <em>{words.inbox.deleting}</em>}
        {!isSent(line) && line.direction === 'out' && <span>{words.inbox.onPhone}</span>}
        {line.editedAt !== null && line.deletedAt === null && <span>{words.inbox.edited}</span>}
        {isSent(line) && line.status === 'queued' && line.notBefore !== undefined && (
          <span>
            {words.inbox.scheduled} <Time at={line.notBefore} seconds={false} />
          </span>
        )}
        <Time at={line.createdAt} seconds={false} />
        {isSent(line) && <Status line={line} instanceId={instance.id} />}
      </span>
      <Problems shown={shown} />
      <Reactions reactions={reactions} />
    </article>
  )
})

/** A text. Of a long one, only the beginning until the person asks for all of it. */
function Text({ text }: { text: string }) {
  const words = useWords()
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? text : cutText(text, MAX_TEXT)
  return (
    <>
      <span className={classes.text} dir="auto">
        {shown}
      </span>
      {shown !== text && (
        <Button variant="subtle" size="compact-sm" onClick={() => setWhole(true)}>
          {words.inbox.wholeText}
        </Button>
      )}
    </>
  )
}

function Quote({
  line,
  instance,
  original,
  onShow,
}: { line: ChatLine } & Pick<BubbleProps, 'instance' | 'original' | 'onShow'>) {
  const words = useWords()
  const { quote } = line
  if (!quote) return null
  const given = 'from' in quote ? quote : null
  const author = original ? authorOf(original) : given ? given.from : undefined
  const isOwn = author === null || author === instance.phone
  const text = original ? previewOf(original, words) : (given?.text ?? words.inbox.quoteUnknown)
  const body = (
    <>
      {author !== undefined && <strong dir="auto">{isOwn ? words.inbox.you : named(author)}</strong>}
      <span dir="auto">{text}</span>
    </>
  )
  const { messageId } = quote
  return messageId === null ? (
    <blockquote className={classes.quote}>{body}</blockquote>
  ) : (
    <blockquote className={classes.quote}>
      <button type="button" title={words.inbox.showQuoted} onClick={() => onShow(messageId)}>
        {body}
      </button>
    </blockquote>
  )
}

function named(author: string): string {
  return /^\d+$/.test(author) ? `+${author}` : author
}

/** The parts of a message other than its text and file. */
function Content({ line }: { line: DeliveredLine }) {
  const words = useWords()
  const { type, location, contacts, poll, text, media } = line
  if (location)
    return (
      <span>
        📍 <bdi>{[location.name, location.address].filter(Boolean).join(', ')}</bdi> {location.latitude},{' '}
        {location.longitude}
      </span>
    )
  if (contacts)
    return (
      <span>
        👤 {words.inbox.types.contact}: <bdi>{contacts.map(({ name }) => name ?? '?').join(', ')}</bdi>
      </span>
    )
  if (poll)
    return (
      <div>
        📊 <strong dir="auto">{poll.question}</strong>
        <ul className={classes.options}>
          {[...new Set(poll.options)].map(option => (
            <li key={option} dir="auto">
              {option}
            </li>
          ))}
        </ul>
      </div>
    )
  return type === 'text' || media || text ? null : <em className={classes.muted}>{words.inbox.types[type]}</em>
}

function Status({ line, instanceId }: { line: SentLine; instanceId: string }) {
  const words = useWords()
  return (
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
  )
}

/** Why the message or a command on it failed, and what to do. */
function Problems({ shown: { line, failed } }: { shown: ShownLine }) {
  const words = useWords()
  const errors = failed.flatMap(({ id, command, error }) =>
    error ? { id, error, title: words.inbox.failedCommands[command] } : [],
  )
  const own = isSent(line) && line.error ? [{ id: line.id, error: line.error, title: `${words.message.failed}.` }] : []
  return [...own, ...errors].map(({ id, error: { code }, title }) => (
    <div key={id} className={classes.failure}>
      <strong>{title}</strong> {words.failures[code]} {words.tools.failureSteps[code]} <code>{code}</code>
    </div>
  ))
}

function Reactions({ reactions }: { reactions: readonly ShownReaction[] }) {
  const words = useWords()
  if (reactions.length === 0) return null
  const byEmoji = Map.groupBy(reactions, ({ emoji }) => emoji)
  return (
    <ul className={classes.reactions}>
      {[...byEmoji].map(([emoji, all]) => {
        const label = words.inbox.reactedBy(emoji, all.map(({ by }) => by ?? words.inbox.you).join(', '))
        return (
          <li key={emoji} title={label}>
            <span aria-hidden>
              {emoji} {all.length > 1 && all.length}
            </span>
            <span className="visually-hidden">{label}</span>
          </li>
        )
      })}
    </ul>
  )
}
