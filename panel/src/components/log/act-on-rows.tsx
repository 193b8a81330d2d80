import { Button, Group, Modal, Stack } from '@mantine/core'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { useAction } from '../../api/use-action.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { Problem } from '../feedback/problem.tsx'
import { useToast } from '../feedback/toasts.tsx'
import { RepeatIcon } from '../icons.tsx'
import { forEachRow, type Selection } from './selection.tsx'

interface ActOnRowsProps<T> {
  selection: Selection
  /** The selected rows that the action applies to. */
  rows: readonly T[]
  action: string
  /** Why there is nothing to do, if there is no such row. */
  none: string
  /** Describes what will happen. */
  children: ReactNode
  act: (row: T) => Promise<unknown>
}

/** One action for all selected rows. It first shows what it will do, and can be stopped. Refused rows stay selected. */
export function ActOnRows<T extends { id: string }>(props: ActOnRowsProps<T>) {
  const { rows, action, none, children } = props
  const words = useWords()
  const [isOpen, setOpen] = useState(false)
  const run = useRun(props, () => setOpen(false))
  const close = () => {
    setOpen(false)
    run.stop()
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
          <Problem error={run.problem} />
          <Group justify="flex-end">
            {run.isPending ? (
              <Button variant="default" onClick={run.stop}>
                {run.isStopped ? words.tools.selection.stopping : words.tools.selection.stop}
              </Button>
            ) : (
              <Button variant="default" onClick={close}>
                {words.common.cancel}
              </Button>
            )}
            <Button loading={run.isPending} disabled={rows.length === 0} onClick={run.start} data-autofocus>
              {action}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  )
}

/** Acts on one row after the other, until `stop` or until the person leaves the page. A call in progress completes. */
function useRun<T extends { id: string }>({ selection, rows, act }: ActOnRowsProps<T>, onDone: () => void) {
  const { selection: words } = useWords().tools
  const toast = useToast()
  const [isStopped, setStopped] = useState(false)
  const stopping = useRef(new AbortController())
  useEffect(() => () => stopping.current.abort(), [])
  const run = useAction({
    mutationFn: () => {
      stopping.current = new AbortController()
      setStopped(false)
      return forEachRow(rows, act, id => selection.remove([id]), stopping.current.signal)
    },
    onSuccess: ({ done, failed, left }) => {
      const text = left > 0 ? words.stopped(done, failed + left) : words.done(done, failed)
      toast(text, failed + left > 0 ? 'bad' : 'good')
      if (failed + left === 0) onDone()
    },
  })
  return {
    start: () => run.mutate(),
    stop: () => {
      if (!run.isPending) return run.reset()
      stopping.current.abort()
      setStopped(true)
    },
    isPending: run.isPending,
    isStopped,
    problem: (run.data?.problem as Error | undefined) ?? null,
  }
}
