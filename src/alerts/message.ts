import { createHash } from 'node:crypto'
import type { AlertRule } from '../domain/alert.ts'
import { isOperatorEndpoint } from '../domain/events/endpoint.ts'
import type { DueNotices, ListedAlert } from '../store/alerts/alerts.ts'

/** The most lines in one message. The panel lists all problems. */
const MAX_LINES = 20
const MINUTE_MS = 60_000

/** One message to a person. */
export interface AlertMessage {
  /** The same for every attempt with the same content. */
  id: string
  title: string
  /** One for each notice. */
  lines: string[]
  /** Whether any problem began. */
  isUrgent: boolean
  /** The panel's address; null if the service does not know it. */
  url: string | null
  notices: Notice[]
}

/** One problem: it began, it is over, or both since the last message. */
export interface Notice {
  alert: ListedAlert
  status: 'began' | 'ended'
}

const TITLES: Record<AlertRule, [one: string, many: string]> = {
  number_down: ['a number is down', 'numbers are down'],
  linking_lost: ['a number was unlinked', 'numbers were unlinked'],
  webhook_failing: ['a webhook fails', 'webhooks fail'],
  events_given_up: ['an instance has undelivered events', 'instances have undelivered events'],
  disk_nearly_full: ['a disk is nearly full', 'disks are nearly full'],
}

/** What a person can do about the problem. */
export const REMEDIES: Record<AlertRule, string> = {
  number_down: 'Open the instance in the panel: it says what to do, and has the button to connect.',
  linking_lost: 'Link the number again in the panel. Messages that were waiting have failed.',
  webhook_failing: 'Check the program that receives the events. Later events are still posted to it.',
  events_given_up: "When the webhook works again, redeliver these events on the instance's Events page in the panel.",
  disk_nearly_full: 'Free space, or enlarge the disk. When it is full, no message is accepted.',
}

export function renderMessage(due: Pick<DueNotices, 'notices'>, url: string | null): AlertMessage {
  const notices = merge(due.notices)
  const began = notices.filter(({ status }) => status === 'began')
  const lines = notices.map(lineOf)
  const key = due.notices.map(({ alert, isEnd }) => `${alert.id}/${isEnd}`).join()
  const id = `ntf_${createHash('sha256').update(key).digest('hex').slice(0, 24)}`
  return { id, title: titleOf(began, notices), lines, isUrgent: began.length > 0, url, notices }
}

/** As many lines as a channel shows, and a last one with the number of the others. */
export function fitLines(lines: readonly string[], fits: (shown: string[]) => boolean): string[] {
  for (let count = Math.min(lines.length, MAX_LINES); ; count -= 1) {
    const shown = lines.slice(0, count)
    if (count < lines.length) shown.push(`… and ${lines.length - count} more, in the panel.`)
    if (count === 0 || fits(shown)) return shown
  }
}

/** If a problem began and ended before the target could be reached, the message only says that it is over. */
function merge(notices: DueNotices['notices']): Notice[] {
  const ended = new Set(notices.filter(({ isEnd }) => isEnd).map(({ alert }) => alert.id))
  const merged = notices.filter(({ alert, isEnd }) => isEnd || !ended.has(alert.id))
  const all = merged.map(({ alert, isEnd }): Notice => ({ alert, status: isEnd ? 'ended' : 'began' }))
  return all.toSorted((a, b) => Number(a.status === 'ended') - Number(b.status === 'ended'))
}

function titleOf(began: Notice[], all: Notice[]): string {
  if (began.length === 0) return `Pombal: ${all.length === 1 ? 'a problem is' : `${all.length} problems are`} solved`
  const rules = [...new Set(began.map(({ alert }) => alert.rule))]
  const parts = rules.map(rule => {
    const count = began.filter(({ alert }) => alert.rule === rule).length
    const [one, many] = TITLES[rule]
    return count === 1 ? one : `${count} ${many}`
  })
  return `Pombal: ${parts.join(', ')}`
}

export function nameOf({ rule, subject, instanceName }: ListedAlert): string {
  if (rule === 'disk_nearly_full') return `Node ${subject}`
  if (isOperatorEndpoint(subject)) return `Operator endpoint ${subject}`
  return instanceName === null ? subject : `${instanceName} (${subject})`
}

function lineOf({ alert, status }: Notice): string {
  const { rule, since, goneSince, endedAt, detail } = alert
  const from = `${new Date(since).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  if (status === 'began') return `⚠ ${nameOf(alert)}: ${TITLES[rule][0]} since ${from}. ${detail} ${REMEDIES[rule]}`
  const minutes = Math.max(1, Math.round(((goneSince ?? endedAt ?? since) - since) / MINUTE_MS))
  return `✓ ${nameOf(alert)}: solved after ${minutes} min (${TITLES[rule][0]} since ${from}).`
}

/** A message that shows that the target works. */
export function testMessage(url: string | null, now: number): AlertMessage {
  return {
    id: `ntf_test${now}`,
    title: 'Pombal: test of alerts',
    lines: ['This is a test. Alerts arrive here.'],
    isUrgent: false,
    url,
    notices: [],
  }
}
