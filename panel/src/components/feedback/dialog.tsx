import { Modal, type ModalProps } from '@mantine/core'
import { useWords } from '../../i18n/i18n.tsx'

interface DialogProps extends ModalProps {
  /** True while the call of the dialog runs. */
  isBusy?: boolean
}

/** A dialog that stays open while its call runs. Otherwise a late answer would close, or fill, the dialog that is open by then. */
export function Dialog({ isBusy = false, onClose, ...props }: DialogProps) {
  const words = useWords()
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
