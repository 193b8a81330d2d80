import { Button, Select } from '@mantine/core'
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { isOperatorEndpoint } from '../../../../src/domain/events/endpoint.ts'
import { callData } from '../../api/client.ts'
import { alertRulesQuery, openAlertsQuery, solvedAlertsQuery } from '../../api/queries.ts'
import type { Alert, AlertRule } from '../../api/types.ts'
import { Badge } from '../../components/badges.tsx'
import { Problem, ReadProblem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { GuideLink } from '../../components/guide-link.tsx'
import { Card, PageHead } from '../../components/panels.tsx'
import { Ago, Time } from '../../components/time.tsx'
import { useTitle } from '../../components/title.ts'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './alerts.module.css'
import { OperatorEndpoints } from './operator-endpoints.tsx'
import { Targets } from './targets.tsx'

const DELAYS = [0, 1, 5, 15, 30, 60, 240] as const
const NEVER = 'never'

export function Alerts() {
  const words = useWords()
  useTitle(words.alerts.title)
  return (
    <div className={classes.page}>
      <PageHead title={words.alerts.title}>
        {words.alerts.hint} <GuideLink to="alerts" />
      </PageHead>
      <Problems />
      <Targets />
      <Rules />
      <OperatorEndpoints />
    </div>
  )
}

/** The current problems, and the past ones. */
function Problems() {
  const { data, error, refetch } = useQuery(openAlertsQuery)
  const problem = <ReadProblem data={data} error={error} refetch={refetch} />
  if (!data) return error ? problem : <Waiting />
  return (
    <>
      <Lasting alerts={data} problem={error && problem} />
      <Solved after={data.map(({ id }) => id).join()} />
    </>
  )
}

/** @param problem why they could not be read again; null if they were */
function Lasting({ alerts, problem }: { alerts: readonly Alert[]; problem: ReactNode }) {
  const words = useWords()
  return (
    <Card title={words.alerts.lasting}>
      {problem}
      {alerts.length === 0 && !problem && <p className={classes.note}>{words.alerts.none}</p>}
      <ul className={classes.list}>
        {alerts.map(alert => (
          <li key={alert.id}>
            <div>
              <Badge tone="bad">{words.alerts.rules[alert.rule]}</Badge> <Subject alert={alert} />
              <div className={classes.note}>
                {words.alerts.since} <Time at={alert.since} seconds={false} /> (<Ago at={alert.since} />)
              </div>
              <div>{words.alerts.remedies[alert.rule]}</div>
            </div>
            {alert.instanceName !== null && (
              <Button
                renderRoot={props => <Link to="/instances/$id" params={{ id: alert.subject }} {...props} />}
                variant="default"
                size="compact-sm"
              >
                {words.alerts.open}
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Card>
  )
}

/** @param after the IDs of the current problems. If they change, a problem may have been solved */
function Solved({ after }: { after: string }) {
  const words = useWords()
  const list = useInfiniteQuery(solvedAlertsQuery)
  const { refetch } = list
  // biome-ignore lint/correctness/useExhaustiveDependencies: read again whenever the problems change
  useEffect(() => void refetch({ cancelRefetch: false }), [after, refetch])
  const solved = list.data?.pages.flatMap(page => page.data) ?? []
  return (
    <Card title={words.alerts.earlier}>
      {list.isSuccess && solved.length === 0 && <p className={classes.note}>{words.alerts.noEarlier}</p>}
      <ul className={classes.list}>
        {solved.map(alert => (
          <li key={alert.id}>
            <div>
              {words.alerts.rules[alert.rule]}: <Subject alert={alert} />
              <div className={classes.note}>
                {words.alerts.since} <Time at={alert.since} seconds={false} />, {words.alerts.solved}{' '}
                <Time at={alert.endedAt ?? alert.since} seconds={false} />
              </div>
            </div>
          </li>
        ))}
      </ul>
      <Problem error={list.error} onRetry={() => void (list.isFetchNextPageError ? list.fetchNextPage() : refetch())} />
      {list.hasNextPage && !list.error && (
        <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {words.alerts.older}
        </Button>
      )}
    </Card>
  )
}

function Subject({ alert: { rule, subject, instanceName } }: { alert: Alert }) {
  const words = useWords()
  if (isOperatorEndpoint(subject)) return <strong>{words.operatorEndpoints.named(subject)}</strong>
  return <strong>{rule === 'disk_nearly_full' ? words.alerts.node(subject) : (instanceName ?? subject)}</strong>
}

function Rules() {
  const words = useWords()
  const client = useQueryClient()
  const { data: rules, error, refetch } = useQuery(alertRulesQuery)
  const set = useMutation({
    mutationFn: ({ rule, afterMinutes }: AlertRule) =>
      callData<AlertRule[]>(`/alerts/rules/${rule}`, { method: 'PUT', body: { afterMinutes } }),
    onSuccess: changed => client.setQueryData(alertRulesQuery.queryKey, changed),
  })
  const optionsOf = (minutes: number | null) => {
    const known =
      minutes === null || DELAYS.some(delay => delay === minutes)
        ? DELAYS
        : [...DELAYS, minutes].toSorted((a, b) => a - b)
    return [...known, null].map(delay => ({ value: String(delay ?? NEVER), label: words.alerts.delay(delay) }))
  }
  return (
    <Card title={words.alerts.ruleTitle} hint={words.alerts.ruleHint}>
      <ReadProblem data={rules} error={error} refetch={refetch} />
      <ul className={classes.list}>
        {rules?.map(({ rule, afterMinutes }) => (
          <li key={rule}>
            <div>{words.alerts.rules[rule]}</div>
            <Select
              aria-label={words.alerts.rules[rule]}
              value={String(afterMinutes ?? NEVER)}
              data={optionsOf(afterMinutes)}
              allowDeselect={false}
              onChange={value => set.mutate({ rule, afterMinutes: value === NEVER ? null : Number(value) })}
              w={170}
            />
          </li>
        ))}
      </ul>
      <Problem error={set.error} />
    </Card>
  )
}
