import type { EndpointId, InstanceId } from './ids.ts'

/** The problems that people are alerted to. */
export const ALERT_RULES = [
  'number_down',
  'linking_lost',
  'webhook_failing',
  'events_given_up',
  'disk_nearly_full',
] as const
export type AlertRule = (typeof ALERT_RULES)[number]

/** How many minutes a problem must last before it is announced; null: it is never announced. */
export type AlertDelays = Record<AlertRule, number | null>

export const DEFAULT_ALERT_DELAYS: AlertDelays = {
  number_down: 5,
  linking_lost: 0,
  webhook_failing: 5,
  events_given_up: 0,
  disk_nearly_full: 0,
}

export const MAX_ALERT_DELAY_MINUTES = 10_080

/** The ways in which an alert reaches a person. */
export const ALERT_CHANNELS = ['webhook', 'ntfy', 'slack', 'discord', 'telegram', 'email'] as const
export type AlertChannel = (typeof ALERT_CHANNELS)[number]

/** The kind of a post to a target of the channel `webhook`. */
export const ALERT_POST = 'alerts'

/** A problem must be gone for this long before it counts as solved, so that a number that flaps causes one alert. */
export const SOLVED_AFTER_MS = 60_000

/** A current problem. */
export interface Problem {
  rule: AlertRule
  /** The instance, the operator endpoint, or the host name of the node whose disk is nearly full. */
  subject: InstanceId | EndpointId | string
  /** When it began, milliseconds since 1970. Null: unknown, so it counts from the time when it was noticed. */
  since: number | null
  /** A sentence for people. */
  detail: string
}

/** A stored problem. It is announced once it has lasted for the delay of its rule. */
export interface Alert extends Problem {
  id: string
  since: number
  /** When it was announced; null if it was not yet. */
  beganAt: number | null
  /** Since when the problem has been gone; null while it lasts. */
  goneSince: number | null
  /** When it counted as solved; null before. */
  endedAt: number | null
}

/** The difference between the stored problems and the current ones. The store applies it in one commit. */
export interface AlertChanges {
  noticed: (Problem & { since: number; beganAt: number | null })[]
  /** Alerts whose problem has another `detail` than before. */
  reworded: { id: string; detail: string }[]
  /** This list and the following ones hold IDs of alerts. */
  began: string[]
  gone: string[]
  returned: string[]
  ended: string[]
  /** Alerts of rules that are switched off. They end without a notice. */
  dropped: string[]
}

/** @param open every alert that has not ended */
export function alertChanges(
  open: readonly Alert[],
  problems: readonly Problem[],
  delays: AlertDelays,
  now: number,
): AlertChanges {
  const key = ({ rule, subject }: Problem) => `${rule}/${subject}`
  const present = new Map(problems.filter(({ rule }) => delays[rule] !== null).map(problem => [key(problem), problem]))
  // A moment that is far in the future was recorded before the clock was set back.
  const hasPassed = (ms: number, since: number) => Math.abs(now - since) >= ms
  const isDue = ({ rule, since }: Pick<Alert, 'rule' | 'since'>) => hasPassed((delays[rule] ?? 0) * 60_000, since)
  const changes: AlertChanges = { noticed: [], reworded: [], began: [], gone: [], returned: [], ended: [], dropped: [] }
  for (const alert of open) {
    if (delays[alert.rule] === null) {
      changes.dropped.push(alert.id)
      continue
    }
    const problem = present.get(key(alert))
    present.delete(key(alert))
    if (problem) {
      if (problem.detail !== alert.detail) changes.reworded.push({ id: alert.id, detail: problem.detail })
      if (alert.goneSince !== null) changes.returned.push(alert.id)
      if (alert.beganAt === null && isDue(alert)) changes.began.push(alert.id)
    } else if (alert.beganAt === null) changes.ended.push(alert.id)
    else if (alert.goneSince === null) changes.gone.push(alert.id)
    else if (hasPassed(SOLVED_AFTER_MS, alert.goneSince)) changes.ended.push(alert.id)
  }
  for (const problem of present.values()) {
    const since = Math.min(problem.since ?? now, now)
    changes.noticed.push({ ...problem, since, beganAt: isDue({ ...problem, since }) ? now : null })
  }
  return changes
}

export function isNothing(changes: AlertChanges): boolean {
  return Object.values(changes).every(list => list.length === 0)
}
