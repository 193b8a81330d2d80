import type { EndpointId } from '../../../domain/ids.ts'
import type { AttemptView, DeliveryView, EventDetailView } from './event.ts'

/** The origin of a URL, without the path and the query, which may contain secrets. */
export function hideUrl(url: string): string {
  const { origin } = new URL(url)
  return url === origin || url === `${origin}/` ? url : `${origin}/…`
}

type IsHidden = (endpointId: EndpointId) => boolean

/** Hides endpoints from callers who may read events, but not the endpoints that receive them. */
export function hideEndpoint<V extends { delivery: DeliveryView | null }>(view: V, isHidden: IsHidden = () => true): V {
  const { delivery } = view
  if (delivery === null || !isHidden(delivery.endpointId)) return view
  return { ...view, delivery: { ...delivery, url: hideUrl(delivery.url) } }
}

/**
 * Hides three things: the URLs; the answers, which often repeat the URL (as the target of a redirect, or on a page for
 * 404); and the signatures, with which anybody could post the event again.
 */
export function hideEndpointsOfEvent(view: EventDetailView, isHidden: IsHidden = () => true): EventDetailView {
  const attemptOf = (attempt: AttemptView): AttemptView => ({
    ...attempt,
    url: hideUrl(attempt.url),
    responseExcerpt: null,
    headers: withoutSignatures(attempt.headers),
  })
  const deliveries = view.deliveries.map(delivery =>
    isHidden(delivery.endpointId)
      ? { ...delivery, url: hideUrl(delivery.url), attempts: delivery.attempts.map(attemptOf) }
      : delivery,
  )
  return { ...hideEndpoint(view, isHidden), deliveries }
}

export function withoutSignatures(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !/signature$/i.test(name)))
}
