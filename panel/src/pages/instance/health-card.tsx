import { useQuery } from '@tanstack/react-query'
import { healthQuery } from '../../api/queries.ts'
import { ReadProblem } from '../../components/feedback/problem.tsx'
import { Card, Fact, Facts } from '../../components/panels.tsx'
import { Ago, duration, Time } from '../../components/time.tsx'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'

/** The last activity of WhatsApp, and the problems of the last 24 hours. */
export function HealthCard({ instanceId }: { instanceId: string }) {
  const { health: words } = useWords()
  const { language } = useLanguage()
  const { data: health, error, refetch } = useQuery(healthQuery(instanceId))
  const problem = <ReadProblem data={health} error={error} refetch={refetch} />
  if (!health) return problem
  // Nothing to show before the first socket.
  if (health.lastFrameAt === null && health.closes.length === 0) return null
  const meanings: Partial<Record<number, string>> = words.codes
  const { lastFrameAt, lastAcknowledgement, undecryptable, restriction, proxy, closes } = health
  return (
    <Card title={words.title} hint={words.hint}>
      {problem}
      <Facts>
        <Fact name={words.lastFrame}>{lastFrameAt ? <Ago at={lastFrameAt} /> : words.never}</Fact>
        <Fact name={words.acknowledgement}>
          {lastAcknowledgement ? (
            <>
              {words.tookTime(duration(lastAcknowledgement.latencyMs, language))}, <Ago at={lastAcknowledgement.at} />
            </>
          ) : (
            words.never
          )}
        </Fact>
        <Fact name={words.undecryptable}>
          {undecryptable.count}
          {undecryptable.lastAt && (
            <>
              , {words.lastTime} <Ago at={undecryptable.lastAt} />
            </>
          )}
        </Fact>
        {proxy && (
          <Fact name={words.proxy}>
            <code>{proxy}</code>
          </Fact>
        )}
        <Fact name={words.restriction}>
          {restriction ? (
            <>
              {restriction.reportedByWhatsapp ? words.restrictedUntil : words.restrictedForNow}{' '}
              <Time at={restriction.until} />
            </>
          ) : (
            words.none
          )}
        </Fact>
        <Fact name={words.closes}>
          {closes.length === 0 && words.none}
          {closes.map(({ code, count, lastAt }) => (
            <div key={code}>
              {words.close(code, count)}, {words.lastTime} <Ago at={lastAt} />
              {meanings[code] && ` (${meanings[code]})`}
            </div>
          ))}
        </Fact>
      </Facts>
    </Card>
  )
}
