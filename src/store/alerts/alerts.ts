import type { Alert, AlertChanges, AlertChannel, AlertDelays, AlertRule, Problem } from '../../domain/alert.ts'
import type { Page, PageRequest } from '../engine/page.ts'

/** Where a channel's messages go. It contains secrets, and is encrypted at rest. */
export interface AlertAddress {
  /** Set for every channel except e-mail. */
  url?: string
  /** ntfy: sent as a bearer token. */
  token?: string
  /** Telegram. */
  chatId?: string
  /** E-mail. */
  to?: string
  /** Webhook: signs each post. */
  secret?: string
}

export interface NewAlertTarget {
  channel: AlertChannel
  name: string
  address: AlertAddress
}

export interface AlertTarget extends NewAlertTarget {
  id: string
  createdAt: number
  /** When a message last arrived; null if none did. */
  lastSentAt: number | null
  /** Failed attempts since then. */
  failures: number
  /** The error of the last failed attempt. */
  lastError: string | null
}

/** An alert as people see it. */
export interface ListedAlert extends Alert {
  /** Null if the subject is a node, an operator endpoint or a deleted instance. */
  instanceName: string | null
}

/** The unsent notices of one target, oldest first. The claim expires, so another node can send them after a crash. */
export interface DueNotices {
  target: AlertTarget
  notices: { alert: ListedAlert; isEnd: boolean }[]
}

export interface Alerts {
  /** The problems that the database shows. Costs a few index searches per instance. */
  findProblems(now: number): Promise<Problem[]>
  /**
   * The alerts that have not ended, announced or not. Alerts about the disk of another host are left out while a node
   * runs there, because only that node sees the disk.
   * @param host the name of this node's host
   */
  listOpen(host: string): Promise<Alert[]>
  /** Announced alerts, newest first: those that have not ended (`isOpen`), those that have, or both. */
  list(page: PageRequest, isOpen?: boolean): Promise<Page<ListedAlert>>
  /**
   * Applies the changes and queues a notice for every target that existed when the alert began, in one commit. Changes that
   * another node has already applied are left out. A call applies at most 1,000 changes of each kind and ignores the
   * rest.
   * @returns how many alerts began and ended
   */
  apply(changes: AlertChanges, now: number): Promise<{ began: number; ended: number }>
  findDelays(): Promise<AlertDelays>
  setDelay(rule: AlertRule, minutes: number | null): Promise<void>
  /** Null if there are `MAX_ALERT_TARGETS` already. */
  createTarget(target: NewAlertTarget, now: number): Promise<AlertTarget | null>
  findTarget(id: string): Promise<AlertTarget | null>
  /** Oldest first. */
  listTargets(): Promise<AlertTarget[]>
  /** Deletes the target and its notices. False if there is no such target. */
  deleteTarget(id: string): Promise<boolean>
  /** Claims the notices of one target for `CLAIMED_FOR_MS`. Null if none are due. */
  claimNotices(): Promise<DueNotices | null>
  /** Removes the notices and resets the target's failures. */
  recordSent(due: DueNotices, now: number): Promise<void>
  /** Keeps the notices for the next attempt. @param retryInMs at most `LONGEST_RETRY_MS` */
  recordFailed(due: DueNotices, error: string, retryInMs: number): Promise<void>
}

export const MAX_ALERT_TARGETS = 20
export const CLAIMED_FOR_MS = 60_000
/** The longest pause after a failed attempt. A target that is due later than this was recorded before the clock was set back. */
export const LONGEST_RETRY_MS = 30 * 60_000
