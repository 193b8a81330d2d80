import { Badge } from '../../components/badges.tsx'
import { duration } from '../../components/time.tsx'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'
import classes from './webhook.module.css'

interface AttemptOutcomeProps {
  /** Null without an answer. */
  status: number | null
  error: string | null
  durationMs: number
}

export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}

/** The outcome of an attempt and how long it took, in one line. */
export function AttemptOutcome({ status, error, durationMs }: AttemptOutcomeProps) {
  const { event } = useWords()
  const { language } = useLanguage()
  return (
    <div className={classes.outcome}>
      <Badge tone={isSuccess(status) ? 'good' : 'bad'}>
        {status === null ? event.noAnswer : event.answered(status)}
      </Badge>
      {error && <code>{error}</code>}
      <span>{duration(durationMs, language)}</span>
    </div>
  )
}
