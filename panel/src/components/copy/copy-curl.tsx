import { Button } from '@mantine/core'
import { useWords } from '../../i18n/i18n.tsx'
import { type ApiCall, curlOfCall } from '../../text/curl.ts'
import { CopyIcon } from '../icons.tsx'
import { useCopyAndSay } from './copy.tsx'

interface CopyCurlProps {
  /** A call of the API, or the text of another command. */
  of: ApiCall | string
  /** Distinguishes several buttons on a page. */
  what: string
}

/** Copies a command for a terminal. It contains no secret. */
export function CopyCurl({ of, what }: CopyCurlProps) {
  const words = useWords()
  const copyAndSay = useCopyAndSay()
  const isCall = typeof of !== 'string'
  function copy(): void {
    if (isCall) copyAndSay(curlOfCall(of, window.location.origin), words.tools.curlCopied)
    else copyAndSay(of, words.common.copied)
  }
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="gray"
      leftSection={<CopyIcon size={15} />}
      onClick={copy}
      aria-label={words.tools.curlOf(what)}
    >
      {words.tools.curl}
    </Button>
  )
}
