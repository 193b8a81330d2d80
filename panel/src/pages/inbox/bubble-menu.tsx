import { Menu } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { EDIT_WINDOW_MS } from '../../../../src/domain/conversation.ts'
import { call } from '../../api/client.ts'
import { serverNow } from '../../api/server-clock.ts'
import type { ChatLine, Instance } from '../../api/types.ts'
import { useIsSending } from '../../api/unsent.ts'
import { useCopyAndSay } from '../../components/copy/copy.tsx'
import { problemText } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { DownIcon } from '../../components/icons.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import type { Writing } from './composer.tsx'
import classes from './inbox.module.css'
import { isSent, previewOf, type ShownLine } from './lines.ts'

const EMOJIS = ['👍', '❤️', '😂', '😮', '😢', '🙏']
const NAMED_LENGTH = 40

export interface BubbleMenuProps {
  instance: Instance
  shown: ShownLine
  /** The place of the unsent message (`usePlaces`). */
  place: string
  mayWrite: boolean
  onWriting: (writing: Writing) => void
  onRemove: (messageId: string) => void
}

/** The actions for a message. A person who may not write can copy its ID. */
export function BubbleMenu({ instance, shown, place, mayWrite, onWriting, onRemove }: BubbleMenuProps) {
  const { line, reactions } = shown
  const words = useWords()
  const toast = useToast()
  const copyAndSay = useCopyAndSay()
  const react = useMutation({
    mutationFn: (emoji: string | null) =>
      call(`/instances/${instance.id}/messages/${line.id}/reaction`, {
        ...(emoji === null ? { method: 'DELETE' } : { method: 'PUT', body: { emoji } }),
      }),
    onError: error => toast(problemText(error, words), 'bad'),
  })
  const isThere = line.deletedAt === null && !(isSent(line) && line.status === 'failed')
  const own = reactions.find(({ by }) => by === null)
  const text = previewOf(line, words)
  return (
    <Menu position="bottom-end" withinPortal withInitialFocusPlaceholder={false}>
      <Menu.Target>
        <button
          type="button"
          className={classes.more}
          aria-label={words.inbox.actions([...text].slice(0, NAMED_LENGTH).join(''))}
        >
          <DownIcon size={16} />
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        {mayWrite && isThere && (
          <>
            <div className={classes.emojis}>
              {EMOJIS.map(emoji => (
                <Menu.Item key={emoji} aria-label={words.inbox.react(emoji)} onClick={() => react.mutate(emoji)}>
                  {emoji}
                </Menu.Item>
              ))}
            </div>
            {own && <Menu.Item onClick={() => react.mutate(null)}>{words.inbox.unreact}</Menu.Item>}
            <ReplyItem place={place} onClick={() => onWriting({ kind: 'reply', line })} />
            {isEditable(line) && (
              <Menu.Item onClick={() => onWriting({ kind: 'edit', line })}>{words.inbox.edit}</Menu.Item>
            )}
            {line.direction === 'out' && (
              <Menu.Item color="red" onClick={() => onRemove(line.id)}>
                {words.inbox.remove}
              </Menu.Item>
            )}
          </>
        )}
        <Menu.Item onClick={() => copyAndSay(line.id, words.inbox.copied)}>{words.inbox.copyId}</Menu.Item>
        {isSent(line) && (
          <Menu.Item
            renderRoot={props => (
              <Link to="/instances/$id/messages" params={{ id: instance.id }} search={{ open: line.id }} {...props} />
            )}
          >
            {words.inbox.open}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}

/** While a message is being sent, its quote cannot change. Only the open menu has this item, so a send does not draw all bubbles. */
function ReplyItem({ place, onClick }: { place: string; onClick: () => void }) {
  const words = useWords()
  const isSending = useIsSending(place)
  return (
    <Menu.Item disabled={isSending} onClick={onClick}>
      {words.inbox.reply}
    </Menu.Item>
  )
}

/** The service decides; the panel only hides what it would refuse. */
function isEditable(line: ChatLine): boolean {
  if (line.direction !== 'out' || line.media !== undefined) return false
  if (!isSent(line) && line.type !== 'text') return false
  return line.sentAt === null || serverNow() - Date.parse(line.sentAt) < EDIT_WINDOW_MS
}
