import type { Random } from '../rig/random.ts'

/** When the service is killed. */
export interface KillPoint {
  /**
   * - `during start-up`: before the banner, or just after it
   * - `at a moment`
   * - `right after a 202`
   * - `before WhatsApp answers`: WhatsApp is paused, and a text that was accepted since is being sent
   * - `in an attempt`: the receiver has the event and has not answered
   */
  kind: 'during start-up' | 'at a moment' | 'right after a 202' | 'before WhatsApp answers' | 'in an attempt'
  /** Waits first until every instance is connected again. */
  onceConnected: boolean
  /** From the start, the banner or the connection to the kill, or to the beginning of the wait for its trigger. */
  afterMs: number
  /** From the trigger to the kill. */
  thenMs: number
}

const KINDS = [
  'during start-up',
  'at a moment',
  'right after a 202',
  'before WhatsApp answers',
  'in an attempt',
] as const
const LONGEST_MS = 900
/** The first moments after a start, when the driver logs in and writes queued messages, and most errors occur. */
const FIRST_MOMENTS_MS = 250
/** From the 202 to the socket: look-up, content, encryption, each with its commit. */
const ON_THE_WAY_MS = 80

/** @param startUpMs how long a start takes on this machine */
export function nextKillPoint(random: Random, startUpMs: number): KillPoint {
  const kind = random.pick(KINDS)
  if (kind === 'during start-up') {
    return { kind, onceConnected: false, afterMs: random.between(0, startUpMs), thenMs: 0 }
  }
  const onceConnected = random.next() < 0.5
  // The driver writes nothing to a paused WhatsApp before it has logged in and knows the recipients' devices.
  if (kind === 'before WhatsApp answers') {
    const afterMs = random.between(onceConnected ? 0 : FIRST_MOMENTS_MS, LONGEST_MS)
    return { kind, onceConnected, afterMs, thenMs: random.between(0, ON_THE_WAY_MS) }
  }
  const withinMs = random.next() < 0.5 ? FIRST_MOMENTS_MS : LONGEST_MS
  return { kind, onceConnected, afterMs: random.between(0, withinMs), thenMs: 0 }
}
