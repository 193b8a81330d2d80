import { Button } from '@mantine/core'
import { ApiError } from '../../api/client.ts'
import type { Words } from '../../i18n/en.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { Notice } from './notice.tsx'
import classes from './problem.module.css'

const DEFAULT_WAIT_SECONDS = 60

/** The error as a sentence with its remedy. */
export function problemText(error: unknown, words: Words): string {
  if (!(error instanceof ApiError)) return words.problems.internal_error
  if (error.code === 'unreachable' && error.isChange) return words.problems.unanswered
  const waitSeconds = error.retryAfterSeconds ?? DEFAULT_WAIT_SECONDS
  if (error.code === 'too_many_attempts') return words.problems.too_many_attempts(waitSeconds)
  if (error.code === 'rate_limit_exceeded') return words.problems.rate_limit_exceeded(waitSeconds)
  const { requestId: _, unanswered: __, refusals, fields, ...sentences } = words.problems
  const field = error.details.map(detail => fields[detail.field]).find(Boolean)
  const known = Object.entries({ ...sentences, ...refusals }).find(([code]) => code === error.code)?.[1]
  return field ?? (typeof known === 'string' ? known : error.message)
}

/** @param onRetry shows a button that tries again */
export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const words = useWords()
  if (!error) return null
  const requestId = error instanceof ApiError && error.code === 'internal_error' ? error.requestId : null
  return (
    <Notice tone="bad">
      {problemText(error, words)}
      {error instanceof ApiError && error.status > 0 && (
        <div className={classes.code}>
          {words.tools.code} <code>{error.code}</code>
        </div>
      )}
      {requestId && <div>{words.problems.requestId(requestId)}</div>}
      {onRetry && (
        <div>
          <Button size="compact-sm" variant="default" mt="xs" onClick={onRetry}>
            {words.common.tryAgain}
          </Button>
        </div>
      )}
    </Notice>
  )
}
