import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { call, callData, type Query } from './client.ts'
import type {
  Account,
  Activity,
  Alert,
  AlertRule,
  AlertTarget,
  ApiKey,
  Attention,
  Calls,
  ChatLine,
  Connection,
  ContactRow,
  Conversation,
  DeliveryCounts,
  EndpointHealth,
  EventDetail,
  GroupRow,
  HandedOutLink,
  Health,
  Instance,
  ListedSession,
  MediaUsage,
  Medium,
  MessageLife,
  OperatorEndpoint,
  Pace,
  Page,
  ProxySetting,
  SandboxPhone,
  Session,
  SignInOptions,
  Statistics,
} from './types.ts'

/** For queries that are too expensive to repeat whenever the service reports a change. */
export const NOT_LIVE = { live: false } as const

/** The first part of the query key under which a new token is kept while it is shown, which happens once. */
export const FRESH_TOKEN = 'fresh-token'

// The queries of the panel. `live.ts` finds each by its key.

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => callData<Session>('/session', { signal }),
  // The caller retries, and explains in the meantime why nothing is shown.
  retry: false,
  // The next sign-in compares its account with this one.
  gcTime: Number.POSITIVE_INFINITY,
})

export const signInOptionsQuery = queryOptions({
  queryKey: ['sign-in-options'],
  queryFn: ({ signal }) => callData<SignInOptions>('/sign-in', { signal }),
})

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => callData<ListedSession[]>('/sessions', { signal }),
})

/**
 * How often the pages of alerts are read. The service checks for problems every 15 s; a new one appears within 25 s.
 */
const ALERTS_EVERY_MS = 10_000

/** All open alerts, from every page. */
export const openAlertsQuery = queryOptions({
  queryKey: ['alerts', 'open'],
  queryFn: async ({ signal }) => {
    const alerts: Alert[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await listPage<Alert>('/alerts', { open: 'true', limit: 200, cursor }, signal)
      alerts.push(...page.data)
      if (page.nextCursor === null) return alerts
      cursor = page.nextCursor
    }
  },
  refetchInterval: ALERTS_EVERY_MS,
})

/** The problems that were solved, latest first. Its pages are read again when an open alert is solved. */
export const solvedAlertsQuery = infiniteQueryOptions({
  queryKey: ['alerts', 'solved'],
  queryFn: ({ pageParam, signal }) =>
    listPage<Alert>('/alerts', { open: 'false', limit: 50, cursor: pageParam }, signal),
  initialPageParam: undefined as string | undefined,
  getNextPageParam: page => page.nextCursor ?? undefined,
  meta: NOT_LIVE,
})

export const alertRulesQuery = queryOptions({
  queryKey: ['alert-rules'],
  queryFn: ({ signal }) => callData<AlertRule[]>('/alerts/rules', { signal }),
})

export const alertTargetsQuery = queryOptions({
  queryKey: ['alert-targets'],
  queryFn: ({ signal }) => callData<AlertTarget[]>('/alerts/targets', { signal }),
  refetchInterval: ALERTS_EVERY_MS,
})

export const operatorEndpointsQuery = queryOptions({
  queryKey: ['operator-endpoints'],
  queryFn: ({ signal }) => callData<OperatorEndpoint[]>('/endpoints', { signal }),
  refetchInterval: ALERTS_EVERY_MS,
})

export const accountsQuery = queryOptions({
  queryKey: ['accounts'],
  queryFn: async ({ signal }) => (await call<Page<Account>>('/accounts', { signal })).data,
})

export function linksQuery(instanceId: string) {
  return queryOptions({
    queryKey: ['links', instanceId],
    queryFn: async ({ signal }) => (await call<Page<HandedOutLink>>(`/instances/${instanceId}/links`, { signal })).data,
  })
}

export function instanceQuery(id: string) {
  return queryOptions({
    queryKey: ['instance', id],
    queryFn: ({ signal }) => callData<Instance>(`/instances/${id}`, { signal }),
  })
}

export function keysQuery(id: string) {
  return queryOptions({
    queryKey: ['keys', id],
    queryFn: async ({ signal }) => (await call<Page<ApiKey>>(`/instances/${id}/keys`, { signal })).data,
  })
}

export function connectionQuery(id: string) {
  return queryOptions({
    queryKey: ['connection', id],
    queryFn: ({ signal }) => callData<Connection>(`/instances/${id}/connection`, { signal }),
  })
}

/** The service itself updates it only every half minute. */
const HEALTH_EVERY_MS = 15_000

export function healthQuery(id: string) {
  return queryOptions({
    queryKey: ['health', id],
    queryFn: ({ signal }) => callData<Health>(`/instances/${id}/health`, { signal }),
    refetchInterval: HEALTH_EVERY_MS,
  })
}

export function activityQuery(ids: readonly string[]) {
  return queryOptions({
    queryKey: ['activity', ids],
    queryFn: ({ signal }) => callData<Activity[]>('/activity', { query: { ids: ids.join(',') }, signal }),
    enabled: ids.length > 0,
    placeholderData: before => before,
  })
}

/** Some problems, such as a full disk, arise without a reported change, so this is polled. */
const ATTENTION_EVERY_MS = 10_000

export const attentionQuery = queryOptions({
  queryKey: ['attention'],
  queryFn: ({ signal }) => callData<Attention>('/attention', { signal }),
  refetchInterval: ATTENTION_EVERY_MS,
})

export function messageQuery(id: string, messageId: string) {
  return queryOptions({
    queryKey: ['message', id, messageId],
    queryFn: ({ signal }) =>
      callData<MessageLife>(`/instances/${id}/messages/${encodeURIComponent(messageId)}`, { signal }),
  })
}

export function eventQuery(id: string, eventId: string) {
  return queryOptions({
    queryKey: ['event', id, eventId],
    queryFn: ({ signal }) =>
      callData<EventDetail>(`/instances/${id}/events/${encodeURIComponent(eventId)}`, { signal }),
  })
}

/** The endpoints of an instance, without their secrets. */
export function endpointsQuery(id: string) {
  return queryOptions({
    queryKey: ['endpoints', id],
    queryFn: ({ signal }) => callData<EndpointHealth[]>(`/instances/${id}/endpoint-health`, { signal }),
  })
}

export function statisticsQuery(id: string, hours: number) {
  return queryOptions({
    queryKey: ['statistics', id, hours],
    queryFn: ({ signal }) => callData<Statistics>(`/instances/${id}/statistics`, { query: { hours }, signal }),
    placeholderData: (before, query) => (query?.queryKey[1] === id ? before : undefined),
  })
}

export function countsQuery(id: string, since: string) {
  return queryOptions({
    queryKey: ['counts', id, since],
    queryFn: ({ signal }) =>
      callData<DeliveryCounts>(`/instances/${id}/deliveries/counts`, { query: { since }, signal }),
  })
}

/** Not updated live, because counting them reads every event since then. */
export function notPostedQuery(id: string, since: string) {
  return queryOptions({
    queryKey: ['not-posted', id, since],
    queryFn: async ({ signal }) => {
      const query = { since, notPosted: 'true' }
      return (await callData<DeliveryCounts>(`/instances/${id}/deliveries/counts`, { query, signal })).notPosted ?? 0
    },
    staleTime: 0,
    meta: NOT_LIVE,
  })
}

export function conversationsQuery(id: string) {
  return queryOptions({
    queryKey: ['conversations', id],
    queryFn: ({ signal }) => callData<Conversation[]>(`/instances/${id}/sandbox/conversations`, { signal }),
  })
}

/** A person or group that a message can be written to. */
export interface Addressee {
  id: string
  /** Null if it is unknown. */
  name: string | null
  /** Null for a person. */
  memberCount: number | null
}

const SHOWN_ADDRESSEES = 8

/** Groups and contacts whose name or number contains the text. */
export function addresseesQuery(id: string, search: string) {
  return queryOptions({
    queryKey: ['addressees', id, search],
    queryFn: async ({ signal }): Promise<Addressee[]> => {
      const query = { search, limit: SHOWN_ADDRESSEES }
      const [groups, contacts] = await Promise.all([
        call<Page<GroupRow>>(`/instances/${id}/groups`, { query, signal }),
        call<Page<ContactRow>>(`/instances/${id}/contacts`, { query, signal }),
      ])
      return [
        ...groups.data.map(group => ({ id: group.id, name: group.subject, memberCount: group.memberCount })),
        ...contacts.data.map(({ chat, name, pushName, username }) => ({
          id: chat,
          name: name ?? pushName ?? username,
          memberCount: null,
        })),
      ]
    },
    staleTime: 0,
    placeholderData: (before, query) => (query?.queryKey[1] === id ? before : undefined),
  })
}

/** Messages whose text contains this, newest first. Not updated live, because the search reads all messages. */
export function foundMessagesQuery(id: string, search: string) {
  return queryOptions({
    queryKey: ['found-messages', id, search],
    queryFn: async ({ signal }) =>
      (await call<Page<ChatLine>>(`/instances/${id}/messages/search`, { query: { search, limit: 30 }, signal })).data,
    staleTime: 0,
    meta: NOT_LIVE,
  })
}

/** Not updated live: a conversation may have very many files. */
export function mediumQuery(id: string, mediaId: string) {
  return queryOptions({
    queryKey: ['medium', id, mediaId],
    meta: NOT_LIVE,
    queryFn: ({ signal }) => callData<Medium>(`/instances/${id}/media/${mediaId}`, { signal }),
  })
}

export function paceQuery(id: string) {
  return queryOptions({
    queryKey: ['pace', id],
    queryFn: ({ signal }) => callData<Pace>(`/instances/${id}/pace`, { signal }),
  })
}

export function callsQuery(id: string) {
  return queryOptions({
    queryKey: ['calls', id],
    queryFn: ({ signal }) => callData<Calls>(`/instances/${id}/calls`, { signal }),
  })
}

export function proxyQuery(id: string) {
  return queryOptions({
    queryKey: ['proxy', id],
    queryFn: ({ signal }) => callData<ProxySetting>(`/instances/${id}/proxy`, { signal }),
  })
}

export function mediaUsageQuery(id: string) {
  return queryOptions({
    queryKey: ['media-usage', id],
    queryFn: ({ signal }) => callData<MediaUsage>(`/instances/${id}/media-usage`, { signal }),
    // If there is no storage, a retry gets the same answer.
    retry: false,
  })
}

export function phoneQuery(id: string) {
  return queryOptions({
    queryKey: ['phone', id],
    queryFn: ({ signal }) => callData<SandboxPhone>(`/instances/${id}/sandbox/phone`, { signal }),
  })
}

export function listPage<T>(path: string, query: Query, signal?: AbortSignal): Promise<Page<T>> {
  return call<Page<T>>(path, { query, signal })
}
