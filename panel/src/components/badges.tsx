import type { ReactNode } from 'react'
import { useAwaySince } from '../api/live.ts'
import type { ConnectionState, DeliveryState, MessageState } from '../api/types.ts'
import { useWords } from '../i18n/i18n.tsx'
import classes from './badges.module.css'

export type Tone = 'good' | 'wait' | 'bad' | 'calm' | 'quiet'

/** Nothing is green while the service does not answer, because the current state is unknown. */
export function useKnownTone(tone: Tone): Tone {
  const isAway = useAwaySince() !== null
  return isAway && tone === 'good' ? 'quiet' : tone
}

/** A coloured word. Its meaning does not depend on the colour. */
export function Badge({ tone, children, live = false }: { tone: Tone; children: ReactNode; live?: boolean }) {
  const shown = useKnownTone(tone)
  return (
    <span className={classes.badge} data-tone={shown}>
      <span className={classes.dot} data-live={live} aria-hidden />
      {children}
    </span>
  )
}

export const CONNECTION_TONES: Record<ConnectionState, Tone> = {
  unlinked: 'quiet',
  linking: 'calm',
  connecting: 'calm',
  connected: 'good',
  reconnecting: 'wait',
  disconnected: 'bad',
  stopped: 'bad',
  logged_out: 'quiet',
}
const ON_ITS_WAY = new Set<string>(['linking', 'connecting', 'reconnecting', 'queued', 'pending'])

/** @param isOutdated the state could not be read again */
export function ConnectionBadge({ state, isOutdated = false }: { state: ConnectionState; isOutdated?: boolean }) {
  const words = useWords()
  const isAway = useAwaySince() !== null
  const { name } = words.connection.states[state]
  if (isAway || isOutdated) return <Badge tone="quiet">{words.connection.lastKnown(name)}</Badge>
  return (
    <Badge tone={CONNECTION_TONES[state]} live={ON_ITS_WAY.has(state)}>
      {name}
    </Badge>
  )
}

const MESSAGE_TONES: Record<MessageState, Tone> = {
  queued: 'wait',
  sent: 'quiet',
  delivered: 'calm',
  read: 'good',
  failed: 'bad',
}

export function MessageBadge({ state }: { state: MessageState }) {
  const words = useWords()
  return (
    <Badge tone={MESSAGE_TONES[state]} live={ON_ITS_WAY.has(state)}>
      {words.messages.states[state]}
    </Badge>
  )
}

const DELIVERY_TONES: Record<DeliveryState, Tone> = {
  pending: 'wait',
  blocked: 'quiet',
  delivered: 'good',
  exhausted: 'bad',
}

/** `state` is null if the event has no delivery, because no endpoint was to receive it. */
export function DeliveryBadge({ state, attempts = 0 }: { state: DeliveryState | null; attempts?: number }) {
  const words = useWords()
  if (state === null) return <Badge tone="quiet">{words.events.states.not_posted}</Badge>
  const isRetrying = state === 'pending' && attempts > 0
  return (
    <Badge tone={DELIVERY_TONES[state]} live={ON_ITS_WAY.has(state)}>
      {isRetrying ? words.events.states.retrying : words.events.states[state]}
    </Badge>
  )
}
