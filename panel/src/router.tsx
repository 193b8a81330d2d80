import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router'
import { useEffect } from 'react'
import { ApiError } from './api/client.ts'
import { instanceQuery, sessionQuery } from './api/queries.ts'
import { Waiting } from './components/feedback/waiting.tsx'
import { pages, readPagesAhead } from './pages.ts'
import { reloadOnFailure } from './reload-on-failure.ts'
import { SessionProblem } from './session-problem.tsx'
import { NotFound, Shell } from './shell.tsx'

interface Context {
  client: QueryClient
}

type Search = Record<string, unknown>

/** Keeps the named parameters that are present, as text. */
function texts<const K extends string>(...names: K[]) {
  return (search: Search): Partial<Record<K, string>> => {
    const found: Partial<Record<K, string>> = {}
    for (const name of names) {
      const value = search[name]
      if (typeof value === 'string' && value !== '') found[name] = value
    }
    return found
  }
}

const root = createRootRouteWithContext<Context>()({ component: Outlet, notFoundComponent: NotFound })

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search: Search): { from?: string; ended?: boolean } => ({
    ...texts('from')(search),
    ...(search['ended'] ? { ended: true } : {}),
  }),
  component: lazyRouteComponent(reloadOnFailure(pages.signIn), 'SignIn'),
})

/** Where an OpenID Connect provider sends the browser back to. */
const signInWithProvider = createRoute({
  getParentRoute: () => root,
  path: '/sign-in/oidc',
  component: lazyRouteComponent(reloadOnFailure(pages.signIn), 'SignIn'),
})

const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  beforeLoad: async ({ context, location }) => {
    try {
      await context.client.ensureQueryData(sessionQuery)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'invalid_admin_key') throw error
      const from = location.href === '/' ? undefined : location.href
      throw redirect({ to: '/sign-in', search: from ? { from } : {}, replace: true })
    }
  },
  component: Inside,
  errorComponent: SessionProblem,
})

function Inside() {
  useEffect(() => readPagesAhead(), [])
  return <Shell />
}

const instances = createRoute({
  getParentRoute: () => inside,
  path: '/',
  validateSearch: texts('search', 'state', 'sort'),
  component: lazyRouteComponent(reloadOnFailure(pages.instances), 'Instances'),
})

/** An incomplete address leads to the list. */
const allInstances = createRoute({
  getParentRoute: () => inside,
  path: '/instances',
  beforeLoad: () => {
    throw redirect({ to: '/', replace: true })
  },
})

const settings = createRoute({
  getParentRoute: () => inside,
  path: '/settings',
  component: lazyRouteComponent(reloadOnFailure(pages.settings), 'Settings'),
})

const people = createRoute({
  getParentRoute: () => inside,
  path: '/people',
  component: lazyRouteComponent(reloadOnFailure(pages.people), 'People'),
})

const invitation = createRoute({
  getParentRoute: () => root,
  path: '/invitation',
  component: lazyRouteComponent(reloadOnFailure(pages.invitation), 'Invitation'),
})

const link = createRoute({
  getParentRoute: () => root,
  path: '/link',
  component: lazyRouteComponent(reloadOnFailure(pages.link), 'LinkPage'),
})

const audit = createRoute({
  getParentRoute: () => inside,
  path: '/audit',
  validateSearch: texts('by', 'action', 'instanceId'),
  component: lazyRouteComponent(reloadOnFailure(pages.audit), 'Audit'),
})

const alerts = createRoute({
  getParentRoute: () => inside,
  path: '/alerts',
  component: lazyRouteComponent(reloadOnFailure(pages.alerts), 'Alerts'),
})

const guides = createRoute({
  getParentRoute: () => inside,
  path: '/guides',
  component: lazyRouteComponent(reloadOnFailure(pages.guides), 'Guides'),
})

const guide = createRoute({
  getParentRoute: () => inside,
  path: '/guides/$name',
  component: lazyRouteComponent(reloadOnFailure(pages.guides), 'Guides'),
})

const instance = createRoute({
  getParentRoute: () => inside,
  path: '/instances/$id',
  // Nothing that was typed or selected for one instance may be used for another.
  remountDeps: ({ params }) => params.id,
  loader: ({ context, params }) => void context.client.prefetchQuery(instanceQuery(params.id)),
  component: lazyRouteComponent(reloadOnFailure(pages.instance), 'InstancePage'),
})

const overview = createRoute({
  getParentRoute: () => instance,
  path: '/',
  component: lazyRouteComponent(reloadOnFailure(pages.overview), 'Overview'),
})

const inbox = createRoute({
  getParentRoute: () => instance,
  path: '/inbox',
  validateSearch: texts('chat', 'message'),
  component: lazyRouteComponent(reloadOnFailure(pages.inbox), 'Inbox'),
})

const messages = createRoute({
  getParentRoute: () => instance,
  path: '/messages',
  validateSearch: texts('state', 'search', 'since', 'until', 'open'),
  component: lazyRouteComponent(reloadOnFailure(pages.messages), 'Messages'),
})

const events = createRoute({
  getParentRoute: () => instance,
  path: '/events',
  validateSearch: texts('state', 'kind', 'endpoint', 'open'),
  component: lazyRouteComponent(reloadOnFailure(pages.events), 'Events'),
})

const webhook = createRoute({
  getParentRoute: () => instance,
  path: '/webhook',
  component: lazyRouteComponent(reloadOnFailure(pages.webhook), 'WebhookPage'),
})

const files = createRoute({
  getParentRoute: () => instance,
  path: '/files',
  component: lazyRouteComponent(reloadOnFailure(pages.files), 'Files'),
})

const phone = createRoute({
  getParentRoute: () => instance,
  path: '/phone',
  validateSearch: texts('with'),
  component: lazyRouteComponent(reloadOnFailure(pages.phone), 'Phone'),
})

const instanceSettings = createRoute({
  getParentRoute: () => instance,
  path: '/settings',
  component: lazyRouteComponent(reloadOnFailure(pages.instanceSettings), 'InstanceSettings'),
})

const tree = root.addChildren([
  signIn,
  signInWithProvider,
  invitation,
  link,
  inside.addChildren([
    instances,
    allInstances,
    settings,
    people,
    audit,
    alerts,
    guides,
    guide,
    instance.addChildren([overview, inbox, messages, events, files, webhook, phone, instanceSettings]),
  ]),
])

function stringifySearch(search: Search): string {
  const present = Object.entries(search).filter(([, value]) => value !== undefined)
  return present.length === 0 ? '' : `?${new URLSearchParams(present.map(([name, value]) => [name, String(value)]))}`
}

export function createPanelRouter(client: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { client },
    defaultPreload: 'intent',
    defaultPendingComponent: Waiting,
    defaultPendingMs: 200,
    // Keeps values as text: a recipient consists of digits but is not a number.
    parseSearch: search => Object.fromEntries(new URLSearchParams(search)),
    stringifySearch,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createPanelRouter>
  }
}
