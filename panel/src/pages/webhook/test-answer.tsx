import { useAwaySince } from '../../api/live.ts'
import type { WebhookTest } from '../../api/types.ts'
import { CodeBlock } from '../../components/copy/copy.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { AttemptOutcome, isSuccess } from './attempt-outcome.tsx'
import classes from './webhook.module.css'

/** The receiver's answer to a test event. */
export function TestAnswer({ answer }: { answer: WebhookTest }) {
  const words = useWords()
  const { status, error, durationMs, responseExcerpt, headers, body, url } = answer
  const isAway = useAwaySince() !== null
  const isGood = isSuccess(status)
  const explained = error && (words.attemptErrors as Record<string, string>)[error]
  const posted = [`POST ${url}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', body]
  return (
    <div className={classes.answer} data-good={isAway ? undefined : isGood}>
      <AttemptOutcome status={status} error={error} durationMs={durationMs} />
      <strong>{isGood ? words.webhook.testOk : words.webhook.testFailed}</strong>
      {!isGood && <span>{explained ?? (status !== null && words.webhook.testStatus(status))}</span>}
      {responseExcerpt && (
        <details>
          <summary>{words.event.response}</summary>
          <CodeBlock code={responseExcerpt} label={words.event.response} />
        </details>
      )}
      <details>
        <summary>{words.webhook.testPosted}</summary>
        <CodeBlock code={posted.join('\n')} label={words.webhook.testPosted} />
      </details>
    </div>
  )
}
