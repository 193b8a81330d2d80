import { Button } from '@mantine/core'
import { useWords } from '../../i18n/i18n.tsx'
import { type ApiCall, curlOfCall } from '../../text/curl.ts'
import { useToast } from '../feedback/toasts.tsx'
import { CopyIcon } from '../icons.tsx'

interface CopyCurlProps {
  /** A call of the API, or the text of another command. */
  of: ApiCall | string
  /** Distinguishes several buttons on a page. */
  what: string
}

/** Copies a command for a terminal. It contains no secret. */
export function CopyCurl({ of, what }: CopyCurlProps) {
  const words = useWords()
  const toast = useToast()
  const isCall = typeof of !== 'string'
  async function copy(): Promise<void> {
    await navigator.clipboard.writeText(isCall ? curlOfCall(of, window.location.origin) : of)
    toast(isCall ? words.tools.curlCopied : words.common.copied)
  }
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="gray"
      leftSection={<CopyIcon size={15} />}
      onClick={() => void copy()}
      aria-label={words.tools.curlOf(what)}
    >
      {words.tools.curl}
    </Button>
  )
}
