import type { Random } from './random.ts'

/** When the service is killed, counted from its banner or, `during start-up`, from its start. */
export interface KillPoint {
  /** The kill follows `afterMs`, or the first 202 or webhook attempt after it. */
  kind: 'during start-up' | 'at a moment' | 'right after a 202' | 'in an attempt'
  afterMs: number
}

const KINDS = ['during start-up', 'at a moment', 'at a moment', 'right after a 202', 'in an attempt'] as const
const LONGEST_MS = 900
/** Where the driver logs in again and writes what is queued: most of what can go wrong is in the first moments. */
const FIRST_MOMENTS_MS = 250

/** @param startUpMs how long a start takes on this machine */
export function nextKillPoint(random: Random, startUpMs: number): KillPoint {
  const kind = random.pick(KINDS)
  if (kind === 'during start-up') return { kind, afterMs: random.between(0, startUpMs) }
  return { kind, afterMs: random.between(0, random.next() < 0.5 ? FIRST_MOMENTS_MS : LONGEST_MS) }
}
