import { ActionIcon, Drawer, Group, Tooltip } from '@mantine/core'
import { type ReactNode, useEffect, useState } from 'react'
import { useWords } from '../../i18n/i18n.tsx'
import { DownIcon, UpIcon } from '../icons.tsx'
import { isTyping } from './keys.ts'

/** The second click of a double click comes within this time. */
const DOUBLE_CLICK_MS = 500

interface DrawerPageProps {
  opened: boolean
  onClose: () => void
  title: string
  /** The neighbours in the list. Undefined at its ends. */
  steps?: Steps
  children: ReactNode
}

export interface Steps {
  previous: (() => void) | undefined
  next: (() => void) | undefined
}

/** The neighbours of the open row in the loaded part of a list. */
export function stepsOf(rows: readonly { id: string }[], open: string | undefined, show: (id: string) => void): Steps {
  const index = open === undefined ? -1 : rows.findIndex(({ id }) => id === open)
  const to = (row: { id: string } | undefined) => (row === undefined ? undefined : () => show(row.id))
  if (index === -1) return { previous: undefined, next: undefined }
  return { previous: to(rows[index - 1]), next: to(rows[index + 1]) }
}

/** Shows one item next to its list, under an address of its own. The keys j and k go to the next and the previous one. */
export function DrawerPage({ opened, onClose, title, steps, children }: DrawerPageProps) {
  const words = useWords()
  // What opened the drawer may have been the first click of a double click. The second one would close it.
  const [closesOutside, setClosesOutside] = useState(false)
  useEffect(() => {
    if (!opened) return
    const timer = setTimeout(() => setClosesOutside(true), DOUBLE_CLICK_MS)
    return () => {
      clearTimeout(timer)
      setClosesOutside(false)
    }
  }, [opened])
  useEffect(() => {
    if (!opened || !steps) return
    const { previous, next } = steps
    const go = (event: KeyboardEvent) => {
      if (isTyping(event)) return
      if (event.key === 'j') next?.()
      if (event.key === 'k') previous?.()
    }
    document.addEventListener('keydown', go)
    return () => document.removeEventListener('keydown', go)
  }, [opened, steps])
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      closeOnClickOutside={closesOutside}
      title={
        <Group gap={6}>
          {title}
          {steps && (steps.previous || steps.next) && (
            <>
              <Step label={`${words.tools.previous} (K)`} onClick={steps.previous}>
                <UpIcon />
              </Step>
              <Step label={`${words.tools.next} (J)`} onClick={steps.next}>
                <DownIcon />
              </Step>
            </>
          )}
        </Group>
      }
      size="min(640px, 100vw)"
      closeButtonProps={{ 'aria-label': words.common.close }}
    >
      {children}
    </Drawer>
  )
}

function Step({ label, onClick, children }: { label: string; onClick: (() => void) | undefined; children: ReactNode }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" aria-label={label} disabled={!onClick} onClick={onClick}>
        {children}
      </ActionIcon>
    </Tooltip>
  )
}
