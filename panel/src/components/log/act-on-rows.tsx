import { Button, Group, Modal, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useWords } from '../../i18n/i18n.tsx'
import { Problem } from '../feedback/problem.tsx'
import { useToast } from '../feedback/toasts.tsx'
import { RepeatIcon } from '../icons.tsx'
import { forEachRow, type Selection } from './selection.tsx'

interface ActOnRowsProps<T> {
  selection: Selection
  /** The marked rows that the action applies to. */
  rows: readonly T[]
  action: string
  /** Why there is nothing to do, if there is no such row. */
  none: string
  /** Describes what will happen. */
  children: ReactNode
  act: (row: T) => Promise<unknown>
}

/** One action for all marked rows. It first shows what it will do. Rows that were refused stay marked. */
export function ActOnRows<T extends { id: string }>({
  selection,
  rows,
  action,
  none,
  children,
  act,
}: ActOnRowsProps<T>) {
  const words = useWords()
  const toast = useToast()
  const [isOpen, setOpen] = useState(false)
  const run = useMutation({
    mutationFn: () => forEachRow(rows, act),
    onSuccess: ({ done, failed }) => {
      selection.remove(done)
      toast(words.tools.selection.done(done.length, failed), failed > 0 ? 'bad' : 'good')
      if (failed === 0) setOpen(false)
    },
  })
  const close = () => {
    setOpen(false)
    run.reset()
  }
  return (
    <>
      {rows.length === 0 ? (
        <span>{none}</span>
      ) : (
        <Button size="compact-sm" leftSection={<RepeatIcon size={15} />} onClick={() => setOpen(true)}>
          {action}
        </Button>
      )}
      <Modal opened={isOpen} onClose={close} title={action} closeButtonProps={{ 'aria-label': words.common.close }}>
        <Stack>
          {children}
          <Problem error={(run.data?.problem as Error | undefined) ?? null} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              {words.common.cancel}
            </Button>
            <Button loading={run.isPending} disabled={rows.length === 0} onClick={() => run.mutate()} data-autofocus>
              {action}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  )
}
