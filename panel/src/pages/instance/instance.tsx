import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation, useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ApiError } from '../../api/client.ts'
import { instanceQuery } from '../../api/queries.ts'
import type { Instance } from '../../api/types.ts'
import { ConnectionBadge } from '../../components/badges.tsx'
import { DeliveryMark } from '../../components/delivery-health.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { BackIcon } from '../../components/icons.tsx'
import { Empty } from '../../components/panels.tsx'
import { useTitle } from '../../components/title.ts'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './instance.module.css'

/** The frame of all pages of an instance: its name, its state, and the navigation. */
export function InstancePage() {
  const words = useWords()
  const { id } = useParams({ from: '/inside/instances/$id' })
  const { data: instance, error, refetch } = useQuery(instanceQuery(id))
  useTitle(useSection(), instance?.name)

  if (error instanceof ApiError && error.code === 'instance_not_found') return <Gone />
  if (error && !instance) return <Problem error={error} onRetry={() => void refetch()} />
  if (!instance) return <Waiting />
  return (
    <>
      <Link to="/" className={classes.back}>
        <BackIcon size={16} /> {words.shell.instances}
      </Link>
      <div className={classes.head}>
        <h1 className={classes.name}>{instance.name}</h1>
        <ConnectionBadge state={instance.state} isOutdated={error !== null} />
        <DeliveryMark instanceId={instance.id} />
        {instance.phone && <span className={classes.phone}>+{instance.phone}</span>}
        {instance.kind === 'sandbox' && (
          <span className={classes.kind} title={words.instance.sandboxBadge}>
            {words.instances.sandbox}
          </span>
        )}
      </div>
      {error && (
        <div className={classes.problem}>
          <Problem error={error} onRetry={() => void refetch()} />
        </div>
      )}
      <Sections instance={instance} />
      <div className={classes.body}>
        <Outlet />
      </div>
    </>
  )
}

/** The name of the section that the address shows. */
function useSection(): string {
  const { instance: words } = useWords()
  const section = useLocation({ select: ({ pathname }) => pathname.split('/')[3] })
  switch (section) {
    case 'inbox':
    case 'messages':
    case 'events':
    case 'files':
    case 'webhook':
    case 'phone':
    case 'settings':
      return words[section]
    default:
      return words.overview
  }
}

function Sections({ instance: { id, kind } }: { instance: Instance }) {
  const words = useWords()
  return (
    <nav className={classes.tabs} aria-label={words.instance.sections}>
      <Tab to="/instances/$id" id={id} exact>
        {words.instance.overview}
      </Tab>
      <Tab to="/instances/$id/inbox" id={id}>
        {words.instance.inbox}
      </Tab>
      <Tab to="/instances/$id/messages" id={id}>
        {words.instance.messages}
      </Tab>
      <Tab to="/instances/$id/events" id={id}>
        {words.instance.events}
      </Tab>
      <Tab to="/instances/$id/files" id={id}>
        {words.instance.files}
      </Tab>
      <Tab to="/instances/$id/webhook" id={id}>
        {words.instance.webhook}
      </Tab>
      {kind === 'sandbox' && (
        <Tab to="/instances/$id/phone" id={id}>
          {words.instance.phone}
        </Tab>
      )}
      <Tab to="/instances/$id/settings" id={id}>
        {words.instance.settings}
      </Tab>
    </nav>
  )
}

type Section =
  | '/instances/$id'
  | '/instances/$id/inbox'
  | '/instances/$id/messages'
  | '/instances/$id/events'
  | '/instances/$id/files'
  | '/instances/$id/webhook'
  | '/instances/$id/phone'
  | '/instances/$id/settings'

function Tab({ to, id, exact = false, children }: { to: Section; id: string; exact?: boolean; children: ReactNode }) {
  return (
    <Link
      to={to}
      params={{ id }}
      className={classes.tab}
      activeOptions={{ exact, includeSearch: false }}
      activeProps={{ 'aria-current': 'page' }}
    >
      {children}
    </Link>
  )
}

/** The instance of this page, which the layout has already loaded. */
export function useInstance(): Instance {
  const { id } = useParams({ from: '/inside/instances/$id' })
  const { data } = useQuery(instanceQuery(id))
  if (!data) throw new Error('The layout shows its pages only once the instance is there.')
  return data
}

function Gone() {
  const words = useWords()
  useTitle(words.instance.gone)
  return (
    <Empty
      level={1}
      title={words.instance.gone}
      action={<Button renderRoot={props => <Link to="/" {...props} />}>{words.shell.toInstances}</Button>}
    >
      {words.instance.goneText}
    </Empty>
  )
}
