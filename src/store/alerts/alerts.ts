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
  /** The failed attempts since then, and the last one's error. */
  failures: number
  lastError: string | null
}

/** An alert as people see it. The name is null for a node, and for an instance that was deleted. */
export interface ListedAlert extends Alert {
  instanceName: string | null
}

/** The unsent notices of one target, oldest first. The claim expires, so that another node can send it after a crash. */
export interface DueNotices {
  target: AlertTarget
  notices: { alert: ListedAlert; isEnd: boolean }[]
}

export interface Alerts {
  /** The problems that the database shows. Costs a few look-ups per instance. */
  findProblems(now: number): Promise<Problem[]>
  /**
   * The alerts that have not ended, announced or not. Alerts about the disk of another node are left out while it is alive:
   * only that node sees its disk.
   * @param host the name of this node's host
   */
  listOpen(host: string): Promise<Alert[]>
  /** Announced alerts, newest first: those that have not ended (`isOpen`), those that have, or both. */
  list(page: PageRequest, isOpen?: boolean): Promise<Page<ListedAlert>>
  /**
   * Applies the changes and queues a notice for every target that existed when the alert began, in one commit. Changes that
   * another node has already applied are left out. A call applies at most a thousand changes of each kind, the next call the rest.
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
  /** Deletes it with its notices. False if there is no such target. */
  deleteTarget(id: string): Promise<boolean>
  /** Claims the notices of one target for `CLAIMED_FOR_MS`. Null if none are due. */
  claimNotices(): Promise<DueNotices | null>
  /** Removes the notices. */
  recordSent(due: DueNotices, now: number): Promise<void>
  /** Keeps the notices for the next attempt. */
  recordFailed(due: DueNotices, error: string, retryInMs: number): Promise<void>
}

export const MAX_ALERT_TARGETS = 20
export const CLAIMED_FOR_MS = 60_000
