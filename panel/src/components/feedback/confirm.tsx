import { Button, Group, Stack, TextInput } from '@mantine/core'
import { type ReactNode, useLayoutEffect, useState } from 'react'
import { useAction } from '../../api/use-action.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { Dialog } from './dialog.tsx'
import { Problem } from './problem.tsx'

interface ConfirmProps {
  opened: boolean
  onClose: () => void
  title: string
  /** The consequences of the action. */
  children: ReactNode
  action: string
  danger?: boolean
  /** The text to type for confirmation, for actions that cannot be undone. */
  typed?: string
  onConfirm: () => Promise<unknown>
}

export function Confirm({ opened, onClose, title, children, action, danger, typed, onConfirm }: ConfirmProps) {
  const words = useWords()
  const [text, setText] = useState('')
  const act = useAction({ mutationFn: onConfirm, onSuccess: close }, { isFinal: true })
  const { reset } = act
  useLayoutEffect(() => {
    if (opened) reset()
  }, [opened, reset])
  function close(): void {
    setText('')
    reset()
    onClose()
  }
  return (
    <Dialog opened={opened} onClose={close} title={title} isBusy={act.isPending}>
      <form
        onSubmit={event => {
          event.preventDefault()
          act.mutate()
        }}
      >
        <Stack>
          <div>{children}</div>
          {typed !== undefined && (
            <TextInput
              label={words.common.typeToConfirm(typed)}
              value={text}
              onChange={event => setText(event.currentTarget.value)}
              autoComplete="off"
              data-autofocus
            />
          )}
          <Problem error={act.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close} disabled={act.isPending}>
              {words.common.cancel}
            </Button>
            <Button
              type="submit"
              color={danger ? 'red' : undefined}
              disabled={typed !== undefined && asShown(text) !== asShown(typed)}
              loading={act.isPending}
            >
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}

/** A page shows several spaces as one. */
function asShown(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
