import { useAwaySince } from '../../api/live.ts'
import type { WebhookTest } from '../../api/types.ts'
import { Badge } from '../../components/badges.tsx'
import { CodeBlock } from '../../components/copy.tsx'
import { duration } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './webhook.module.css'

/** What the receiver answered to a test event. */
export function TestAnswer({ answer }: { answer: WebhookTest }) {
  const words = useWords()
  const { status, error, durationMs, responseExcerpt, headers, body, url } = answer
  const isAway = useAwaySince() !== null
  const isSuccess = status !== null && status >= 200 && status < 300
  const explained = error && (words.attemptErrors as Record<string, string>)[error]
  const posted = [`POST ${url}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', body]
  return (
    <div className={classes.answer} data-good={isAway ? undefined : isSuccess}>
      <div className={classes.answerHead}>
        <Badge tone={isSuccess ? 'good' : 'bad'}>
          {status === null ? words.event.noAnswer : words.event.answered(status)}
        </Badge>
        {error && <code>{error}</code>}
        <span>{duration(durationMs)}</span>
      </div>
      <strong>{isSuccess ? words.webhook.testOk : words.webhook.testFailed}</strong>
      {!isSuccess && <span>{explained ?? (status !== null && words.webhook.testStatus(status))}</span>}
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
