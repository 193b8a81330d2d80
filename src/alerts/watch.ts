import type { Logger } from 'pino'
import { alertChanges, isNothing, type Problem } from '../domain/alert.ts'
import type { DiskSpace } from '../domain/disk.ts'
import { backoffMs } from '../kit/backoff.ts'
import { type Repeated, repeat } from '../kit/repeat.ts'
import { type Alerts, LONGEST_RETRY_MS } from '../store/alerts/alerts.ts'
import { renderMessage } from './message.ts'
import type { AlertSender } from './send.ts'

const EVERY_MS = 15_000
/** Late enough for the instances to connect after a start. */
const FIRST_AFTER_MS = 30_000
const FIRST_RETRY_MS = 10_000
/** Messages in one round. The others wait for the next round. */
const MAX_MESSAGES = 50

interface AlertWatchOptions {
  alerts: Alerts
  sender: Pick<AlertSender, 'send'>
  /** The space of the disk that holds `DATA_DIR`. Null: unknown, for example because the folder does not exist. */
  diskSpace: () => Promise<DiskSpace | null>
  /** The name of this node's host. */
  host: string
  /** The panel's address, for the messages. */
  url: string | null
  logger: Logger
  now: () => number
  everyMs?: number | undefined
  firstAfterMs?: number | undefined
}

/**
 * Compares the current problems with the stored alerts, and sends the notices that are due. A target that does not answer does not
 * delay the comparison. Any number of nodes can run it at once: each change is applied once, and each message is claimed by
 * one node. A crash between sending and recording sends a message twice; nothing is lost.
 */
export function startAlerts(options: AlertWatchOptions): Pick<Repeated, 'stop'> {
  const { logger, everyMs = EVERY_MS, firstAfterMs = FIRST_AFTER_MS } = options
  const onFailed = (error: unknown) => logger.warn({ err: error }, 'alerts.failed')
  const sending = repeat(stopping => sendDue(options, stopping), { firstAfterMs, everyMs, onFailed })
  const watching = repeat(() => watchOnce(options).finally(sending.wake), { firstAfterMs, everyMs, onFailed })
  return {
    async stop() {
      await Promise.all([watching.stop(), sending.stop()])
    },
  }
}

async function watchOnce(options: AlertWatchOptions): Promise<void> {
  const { alerts, host, diskSpace, logger, now } = options
  const [open, delays, found, disk] = await Promise.all([
    alerts.listOpen(host),
    alerts.findDelays(),
    alerts.findProblems(now()),
    diskSpace(),
  ])
  // An unknown disk neither begins nor ends this host's alert.
  const judged = disk ? open : open.filter(({ rule, subject }) => rule !== 'disk_nearly_full' || subject !== host)
  const changes = alertChanges(judged, [...found, ...diskProblems(disk, host)], delays, now())
  if (isNothing(changes)) return
  const { began, ended } = await alerts.apply(changes, now())
  if (began + ended > 0) logger.info({ began, ended }, 'alerts.changed')
}

function diskProblems(disk: DiskSpace | null, host: string): Problem[] {
  if (!disk?.isNearlyFull) return []
  const mib = Math.floor(disk.freeBytes / 1024 ** 2).toLocaleString('en')
  const detail = `${mib} MiB are left (${Math.floor((disk.freeBytes / disk.totalBytes) * 100)}%).`
  return [{ rule: 'disk_nearly_full', subject: host, since: null, detail }]
}

async function sendDue({ alerts, sender, url, logger, now }: AlertWatchOptions, stopping: AbortSignal): Promise<void> {
  for (let messages = 0; messages < MAX_MESSAGES && !stopping.aborted; messages += 1) {
    const due = await alerts.claimNotices()
    if (due === null) return
    const error = await sender.send(due.target, renderMessage(due, url))
    const { id: target, channel, failures } = due.target
    if (error === null) {
      await alerts.recordSent(due, now())
      logger.info({ target, channel, notices: due.notices.length }, 'alerts.sent')
    } else {
      await alerts.recordFailed(due, error, backoffMs(failures, FIRST_RETRY_MS, LONGEST_RETRY_MS))
      logger.warn({ target, channel, failures: failures + 1 }, 'alerts.send_failed')
    }
  }
}
