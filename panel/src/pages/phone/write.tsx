import { Button, Stack, Textarea, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { conversationsQuery } from '../../api/queries.ts'
import type { Conversation } from '../../api/types.ts'
import { changeUnsent, dropSent, usePlaces, useUnsent } from '../../api/unsent.ts'
import { useAction } from '../../api/use-action.ts'
import { useMay } from '../../api/use-role.ts'
import { Dialog } from '../../components/feedback/dialog.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { SendIcon } from '../../components/icons.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { conversationName } from './conversation-name.ts'
import classes from './phone.module.css'

interface Writing {
  from: string
  text: string
  group?: string
  name?: string
}

function useWrite(instanceId: string, onWritten: (written: Writing) => void) {
  const client = useQueryClient()
  return useAction({
    mutationFn: (body: Writing) => call(`/instances/${instanceId}/sandbox/incoming`, { method: 'POST', body }),
    onSuccess: (_, written) => {
      onWritten(written)
      void client.invalidateQueries(conversationsQuery(instanceId))
    },
  })
}

interface ReplyProps {
  instanceId: string
  conversation: Conversation
  /** A person begins to write. */
  onWriting: () => void
}

/** Writes to the instance in an existing conversation, whose unsent text stays with it. Renders nothing for a viewer. */
export function Reply({ instanceId, conversation, onWriting }: ReplyProps) {
  const words = useWords()
  const toast = useToast()
  const place = usePlaces(instanceId)(`phone ${conversation.with}`)
  const { text = '' } = useUnsent(place)
  const write = useWrite(instanceId, written => {
    dropSent(place, written.text)
    toast(words.phone.written)
  })
  const mayWrite = useMay('operator')
  if (!mayWrite) return null
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
        aria-label={words.phone.reply(isGroup ? `+${from}` : conversationName(conversation, words))}
        placeholder={words.phone.replyPlaceholder}
        value={text}
        onFocus={onWriting}
        onChange={event => changeUnsent(place, { text: event.currentTarget.value })}
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

/** Writes to the instance as any contact. */
export function WriteModal({ instanceId, opened, onClose, onWritten }: WriteModalProps) {
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
    <Dialog opened={opened} onClose={onClose} title={words.phone.writeAs} isBusy={write.isPending}>
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
    </Dialog>
  )
}
