import { Button } from '@mantine/core'
import { ApiError } from '../../api/client.ts'
import { useAwaySince } from '../../api/live.ts'
import type { Words } from '../../i18n/en.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { Notice } from './notice.tsx'
import classes from './problem.module.css'

const DEFAULT_WAIT_SECONDS = 60

/** The error as a sentence with its remedy. */
export function problemText(error: unknown, words: Words): string {
  if (!(error instanceof ApiError)) return words.problems.internal_error
  if (error.code === 'unreachable' && error.isChange) return words.problems.unanswered
  if (error.code === 'refused_by_proxy') return words.problems.refused_by_proxy(error.status)
  const waitSeconds = error.retryAfterSeconds ?? DEFAULT_WAIT_SECONDS
  if (error.code === 'too_many_attempts') return words.problems.too_many_attempts(waitSeconds)
  if (error.code === 'rate_limit_exceeded') return words.problems.rate_limit_exceeded(waitSeconds)
  const { requestId: _, unanswered: __, refusals, fields: ___, calls: ____, ...sentences } = words.problems
  const known = Object.entries({ ...sentences, ...refusals }).find(([code]) => code === error.code)?.[1]
  return fieldText(error, words) ?? (typeof known === 'string' ? known : error.message)
}

/** What is wrong with a field of the request, if there is a text for it. */
function fieldText({ code, details, subject }: ApiError, words: Words): string | undefined {
  const { fields, calls } = words.problems
  const isUnnamed = code === 'invalid_request' && details.length === 0
  const names = isUnnamed ? [''] : details.map(({ field }) => field)
  return names.map(name => calls[subject]?.[name] ?? fields[name]).find(Boolean)
}

/** The service's own sentence, which is in English, if the text does not say what is wrong with the request. */
function serviceSentence(error: ApiError, words: Words): string | null {
  if (error.code !== 'invalid_request' || fieldText(error, words) !== undefined) return null
  return problemText(error, words) === error.message ? null : error.message
}

interface ProblemProps {
  error: unknown
  /** In place of the sentence for the error. */
  text?: string | undefined
  /** Shows a button that tries again. */
  onRetry?: () => void
}

export function Problem({ error, text, onRetry }: ProblemProps) {
  const words = useWords()
  if (!error) return null
  const requestId = error instanceof ApiError && error.code === 'internal_error' ? error.requestId : null
  const sentence = error instanceof ApiError && !text ? serviceSentence(error, words) : null
  return (
    <Notice tone="bad">
      {text ?? problemText(error, words)} {sentence && <span lang="en">{sentence}</span>}
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

interface ReadProblemProps {
  /** What was read before; undefined if nothing was. The page still shows it, and it may be out of date. */
  data: unknown
  error: unknown
  refetch: () => unknown
}

/** Why the last read failed. */
export function ReadProblem({ data, error, refetch }: ReadProblemProps) {
  const words = useWords()
  const isAway = useAwaySince() !== null
  const isKnown = data !== undefined
  // While the service does not answer, the frame of the page says so.
  if (isKnown && isAway) return null
  return <Problem error={error} text={isKnown ? words.common.outdated : undefined} onRetry={() => void refetch()} />
}
