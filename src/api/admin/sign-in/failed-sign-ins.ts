import { BoundedMap } from '../../../kit/bounded-map.ts'
import type { Audit, AuditEntry } from '../../../store/audit/audit.ts'
import { networkOf } from './caller-address.ts'

const HOUR_MS = 60 * 60_000
/** The shortest time between two records for one network. */
const RECORD_EVERY_MS = 10 * 60_000
/** The limit for all networks together, on this node. A year of guessing fills about 150 MB. */
const MAX_PER_HOUR = 60
const MAX_NETWORKS = 1_000

export function signInEntry(actor: string, address: string, details: AuditEntry['details']): AuditEntry {
  return { actor, actorName: null, action: 'signIn', instanceId: null, address, details }
}

/**
 * Records failed sign-ins. The number of records is limited, so guessing cannot fill the disk. Each record counts the sign-ins that
 * were left out.
 */
export class FailedSignIns {
  readonly #audit: Pick<Audit, 'append'>
  readonly #now: () => number
  readonly #recordedAt = new BoundedMap<string, number>(MAX_NETWORKS)
  #hourEndsAt = 0
  #recordedInHour = 0
  #leftOut = 0

  constructor(audit: Pick<Audit, 'append'>, now: () => number) {
    this.#audit = audit
    this.#now = now
  }

  /**
   * @param address the caller's
   * @param details how it was tried, and why it failed
   */
  async record(address: string, details: AuditEntry['details'] = {}): Promise<void> {
    const now = this.#now()
    const network = networkOf(address)
    if (now >= this.#hourEndsAt || now < this.#hourEndsAt - HOUR_MS) {
      this.#hourEndsAt = now + HOUR_MS
      this.#recordedInHour = 0
    }
    const isRecent = Math.abs(now - (this.#recordedAt.get(network) ?? Number.NEGATIVE_INFINITY)) < RECORD_EVERY_MS
    if (isRecent || this.#recordedInHour >= MAX_PER_HOUR) {
      this.#leftOut += 1
      return
    }
    this.#recordedAt.set(network, now)
    this.#recordedInHour += 1
    const leftOut = this.#leftOut
    this.#leftOut = 0
    await this.#audit.append(
      signInEntry('nobody', address, { ...details, succeeded: false, notRecordedBefore: leftOut }),
    )
  }
}
