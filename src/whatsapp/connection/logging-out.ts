import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from '../../kit/deadline.ts'
import type { Link } from '../baileys/link.ts'
import { afterClose } from './after-close.ts'

/** The time for a logout, from the moment at which its first socket begins to open. */
export const LOGOUT_WITHIN_MS = 8_000
const RETRY_AFTER_MS = 1_000
const LOOK_EVERY_MS = 50

/**
 * Logs out at WhatsApp. While WhatsApp cannot be reached, tries again over another link until the time is over.
 * @param link open, or being opened
 * @param reopen opens another link. Returns null if it cannot
 * @returns whether WhatsApp has confirmed that the device is removed
 */
export async function logOut(link: Link, reopen: () => Promise<Link | null>): Promise<boolean> {
  const deadline = performance.now() + LOGOUT_WITHIN_MS
  for (let current: Link | null = link; current !== null; current = await reopen()) {
    if (await logOutOver(current, Math.max(0, deadline - performance.now()))) return true
    const { end } = current
    // The link was closed from here, WhatsApp is silent, or another attempt would fail or do harm.
    if (end === null || afterClose(end).kind === 'stop') return false
    if (performance.now() + RETRY_AFTER_MS >= deadline) return false
    await sleep(RETRY_AFTER_MS)
  }
  return false
}

/** Waits until the link is open, then logs out over it. */
export async function logOutOver(link: Link, limitMs: number): Promise<boolean> {
  try {
    await withDeadline(
      limitMs,
      opened(link, limitMs).then(() => link.logOut()),
    )
    return true
  } catch {
    // WhatsApp may have removed the device earlier, or have ended the link instead of answering.
    return link.end !== null && afterClose(link.end).kind === 'logged_out'
  }
}

async function opened(link: Link, limitMs: number): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!link.isOpen && !link.closed.aborted && performance.now() < deadline) await sleep(LOOK_EVERY_MS)
}
