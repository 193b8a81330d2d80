import { Button, SegmentedControl, Select, useMantineColorScheme } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { call } from '../api/client.ts'
import { sessionQuery, sessionsQuery } from '../api/queries.ts'
import type { ListedSession } from '../api/types.ts'
import { useMay } from '../api/use-role.ts'
import { Problem, ReadProblem } from '../components/feedback/problem.tsx'
import { useToast } from '../components/feedback/toasts.tsx'
import { Waiting } from '../components/feedback/waiting.tsx'
import { Card, Fact, Facts, PageHead } from '../components/panels.tsx'
import { Time } from '../components/time.tsx'
import { useTitle } from '../components/title.ts'
import { useLanguage, useWords } from '../i18n/i18n.tsx'
import { findLanguage, LANGUAGES } from '../i18n/languages.ts'
import { chooseTimeZone, listZones, ownZone, useTimeZone } from '../text/time-zone.ts'
import { OwnPassword } from './people/own-password.tsx'
import { PanelPassword } from './people/panel-password.tsx'
import classes from './settings.module.css'

export function Settings() {
  const words = useWords()
  const isOwner = useMay('owner')
  useTitle(words.settings.title)
  return (
    <div className={classes.page}>
      <PageHead title={words.settings.title} />
      <Appearance />
      <OwnPassword />
      {isOwner && <PanelPassword />}
      <Sessions />
      {isOwner && (
        <>
          <LinkCard title={words.people.title} hint={words.people.hint} to="/people" action={words.people.open} />
          <LinkCard title={words.audit.title} hint={words.audit.hint} to="/audit" action={words.audit.open} />
        </>
      )}
      <LinkCard title={words.guides.title} hint={words.guides.about} to="/guides" action={words.guides.open} />
      <About />
    </div>
  )
}

interface LinkCardProps {
  title: string
  hint: string
  to: '/people' | '/audit' | '/guides'
  action: string
}

function LinkCard({ title, hint, to, action }: LinkCardProps) {
  return (
    <Card
      title={title}
      hint={hint}
      action={
        <Button variant="default" renderRoot={props => <Link to={to} {...props} />}>
          {action}
        </Button>
      }
    />
  )
}

function Appearance() {
  const words = useWords()
  const { language, setLanguage } = useLanguage()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <Card title={words.settings.appearance}>
      <div className={classes.choices}>
        <Choice name={words.shell.language}>
          <SegmentedControl
            aria-label={words.shell.language}
            value={language}
            onChange={value => setLanguage(findLanguage(value) ?? 'en')}
            data={LANGUAGES.map(({ code, name }) => ({ value: code, label: name }))}
          />
        </Choice>
        <Choice name={words.tools.timeZone} isWide>
          <TimeZone />
        </Choice>
        <Choice name={words.settings.colours}>
          <SegmentedControl
            aria-label={words.settings.colours}
            value={colorScheme}
            onChange={value => setColorScheme(value === 'light' || value === 'dark' ? value : 'auto')}
            data={(['light', 'dark', 'auto'] as const).map(value => ({ value, label: words.settings.schemes[value] }))}
          />
        </Choice>
      </div>
    </Card>
  )
}

function TimeZone() {
  const words = useWords()
  const zone = useTimeZone()
  return (
    <Select
      aria-label={words.tools.timeZone}
      value={zone ?? ''}
      onChange={value => chooseTimeZone(value || undefined)}
      data={[
        { value: '', label: words.tools.browserZone(ownZone()) },
        ...listZones().map(name => ({ value: name, label: name })),
      ]}
      filter={({ options, search }) => options.filter(option => matchesZone(option, search))}
      searchable
      allowDeselect={false}
      maxDropdownHeight={320}
      w="100%"
    />
  )
}

/** `sao paulo` finds `America/Sao_Paulo`. */
function matchesZone(option: object, search: string): boolean {
  const wanted = search.trim().toLowerCase().replaceAll(' ', '_')
  return 'label' in option && String(option.label).toLowerCase().includes(wanted)
}

function Choice({ name, isWide, children }: { name: string; isWide?: boolean; children: ReactNode }) {
  return (
    <div className={classes.choice} data-wide={isWide}>
      <span aria-hidden>{name}</span>
      {children}
    </div>
  )
}

function Sessions() {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const { data: sessions, error, refetch } = useQuery(sessionsQuery)
  const end = useMutation({
    mutationFn: (id: string) => call(`/sessions/${id}`, { method: 'DELETE' }),
    onSuccess: () => {
      toast(words.settings.ended)
      void client.invalidateQueries(sessionsQuery)
    },
  })
  const endOthers = useMutation({
    mutationFn: () => call('/sessions', { method: 'DELETE' }),
    onSuccess: () => {
      toast(words.settings.endedOthers)
      void client.invalidateQueries(sessionsQuery)
    },
  })
  return (
    <Card
      title={words.settings.sessions}
      hint={words.settings.sessionsHint}
      action={
        sessions &&
        sessions.length > 1 && (
          <Button variant="default" loading={endOthers.isPending} onClick={() => endOthers.mutate()}>
            {words.settings.endOthers}
          </Button>
        )
      }
    >
      {!sessions && !error && <Waiting />}
      <ReadProblem data={sessions} error={error} refetch={refetch} />
      <ul className={classes.sessions}>
        {sessions?.map(session => (
          <li key={session.id}>
            <div>
              <strong>{agentName(session) ?? words.settings.unknownAgent}</strong>
              {session.current && <span className={classes.current}>{words.settings.thisOne}</span>}
              <div className={classes.when}>
                {words.settings.started} <Time at={session.createdAt} seconds={false} />, {words.settings.expires}{' '}
                <Time at={session.expiresAt} seconds={false} />
              </div>
            </div>
            {!session.current && (
              <Button
                variant="default"
                size="compact-sm"
                loading={end.isPending && end.variables === session.id}
                onClick={() => end.mutate(session.id)}
                aria-label={words.settings.endLabel(agentName(session) ?? words.settings.unknownAgent)}
              >
                {words.settings.end}
              </Button>
            )}
          </li>
        ))}
      </ul>
      <Problem error={end.error ?? endOthers.error} />
    </Card>
  )
}

const BROWSERS: readonly [RegExp, string][] = [
  [/Edg\//, 'Edge'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
]
const SYSTEMS: readonly [RegExp, string][] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
]

/** "Firefox, Windows" from a User-Agent. Null if it names neither. */
function agentName({ userAgent }: ListedSession): string | null {
  const find = (names: readonly [RegExp, string][]) => names.find(([pattern]) => pattern.test(userAgent ?? ''))?.[1]
  return [find(BROWSERS), find(SYSTEMS)].filter(Boolean).join(', ') || null
}

function About() {
  const words = useWords()
  const { data: session } = useQuery(sessionQuery)
  return (
    <Card title={words.settings.about}>
      <Facts>
        <Fact name={words.settings.version}>Pombal {session?.version}</Fact>
        <Fact name={words.shell.apiReference}>
          <a href="/docs/">/docs</a>
        </Fact>
      </Facts>
    </Card>
  )
}
