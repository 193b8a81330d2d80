import { SegmentedControl } from '@mantine/core'
import { useState } from 'react'
import { useWords } from '../i18n/i18n.tsx'
import { prettyJson } from '../text/pretty-json.ts'
import { CodeBlock } from './copy/copy.tsx'

/** A body. JSON is shown with line breaks, or as it was posted. */
export function JsonBlock({ code, label }: { code: string; label: string }) {
  const words = useWords()
  const [isExact, setExact] = useState(false)
  const pretty = prettyJson(code)
  if (pretty === null || pretty === code) return <CodeBlock code={code} label={label} />
  return (
    <div>
      <SegmentedControl
        size="xs"
        mb={8}
        aria-label={`${words.tools.view}: ${label}`}
        value={isExact ? 'exact' : 'formatted'}
        onChange={value => setExact(value === 'exact')}
        data={[
          { value: 'formatted', label: words.tools.formatted },
          { value: 'exact', label: words.tools.exact },
        ]}
      />
      <CodeBlock code={isExact ? code : pretty} label={label} />
    </div>
  )
}
