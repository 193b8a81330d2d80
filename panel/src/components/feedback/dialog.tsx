import { Modal, type ModalProps } from '@mantine/core'
import { useLayoutEffect, useRef } from 'react'
import { useWords } from '../../i18n/i18n.tsx'

interface DialogProps extends ModalProps {
  /** True while the call of the dialog runs. */
  isBusy?: boolean
}

/** A dialog that stays open while its call runs. Otherwise a late answer would close, or fill, the dialog that is open by then. */
export function Dialog({ isBusy = false, onClose, ...props }: DialogProps) {
  const words = useWords()
  useFocusInside(isBusy)
  return (
    <Modal
      {...props}
      onClose={() => {
        if (!isBusy) onClose()
      }}
      closeButtonProps={{ 'aria-label': words.common.close, disabled: isBusy }}
    />
  )
}

/** Keeps the focus in the dialog while the pressed button is disabled. A browser would give it to the page. */
function useFocusInside(isBusy: boolean): void {
  const pressed = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const focused = document.activeElement
    if (isBusy && focused instanceof HTMLElement && focused.matches(':disabled')) {
      pressed.current = focused
      focused.closest<HTMLElement>('[role="dialog"]')?.focus()
    } else if (!isBusy && pressed.current !== null) {
      if (focused === pressed.current.closest('[role="dialog"]')) pressed.current.focus()
      pressed.current = null
    }
  }, [isBusy])
}
