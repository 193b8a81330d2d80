import { Loader } from '@mantine/core'
import { useEffect, useState } from 'react'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './waiting.module.css'

/** A shorter wait is not noticeable, but a flashing spinner would be. */
const NOTICED_AFTER_MS = 200

/** A spinner with a text, shown only once the wait is noticeable. */
export function Waiting({ text }: { text?: string }) {
  const words = useWords()
  const [isNoticed, setNoticed] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setNoticed(true), NOTICED_AFTER_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className={classes.waiting} role="status">
      {isNoticed && (
        <>
          <Loader size="sm" aria-hidden />
          <span>{text ?? words.common.loading}</span>
        </>
      )}
    </div>
  )
}
