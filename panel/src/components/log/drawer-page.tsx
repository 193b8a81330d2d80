import { Drawer } from '@mantine/core'
import type { ReactNode } from 'react'
import { useWords } from '../../i18n/i18n.tsx'

/** Shows one item next to its list, under an address of its own. */
export function DrawerPage({
  opened,
  onClose,
  title,
  children,
}: {
  opened: boolean
  onClose: () => void
  title: string
  children: ReactNode
}) {
  const words = useWords()
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      title={title}
      size="min(640px, 100vw)"
      closeButtonProps={{ 'aria-label': words.common.close }}
    >
      {children}
    </Drawer>
  )
}
