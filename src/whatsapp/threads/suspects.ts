import type { InstanceId } from '../../domain/ids.ts'

/** Deaths that are further apart have nothing to do with each other. */
const FORGET_AFTER_MS = 10 * 60_000
/** After this many deaths of a thread that it had to itself, an instance is the cause. */
const DEATHS_ALONE = 3

interface Suspect {
  lastDeathAt: number
  /** Deaths of its threads. */
  deaths: number
  /** Those of threads that ran no other instance. */
  alone: number
  /** Suspects of one group share a thread with nobody else. Null: any thread. */
  group: number | null
}

/**
 * Finds the instance that kills its threads, because nothing else names it: an endless loop and exhausted memory leave no
 * trace. The instances of a dead thread start again as before. If their threads die again, each half of them gets a thread
 * of its own, until the cause is alone in one.
 */
export class Suspects {
  readonly #now: () => number
  readonly #suspects = new Map<InstanceId, Suspect>()
  #lastGroup = 0

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** A thread died while it ran these instances. */
  noteDeath(instances: readonly InstanceId[]): void {
    const suspects = instances.map(instanceId => this.#suspect(instanceId))
    const isRepeated = suspects.every(({ deaths }) => deaths > 0)
    for (const suspect of suspects) {
      suspect.deaths += 1
      suspect.lastDeathAt = this.#now()
      if (suspects.length === 1) suspect.alone += 1
    }
    if (!isRepeated) return
    const middle = Math.ceil(suspects.length / 2)
    for (const half of [suspects.slice(0, middle), suspects.slice(middle)]) {
      this.#lastGroup += 1
      for (const suspect of half) suspect.group = this.#lastGroup
    }
  }

  groupOf(instanceId: InstanceId): number | null {
    return this.#find(instanceId)?.group ?? null
  }

  deathsOf(instanceId: InstanceId): number {
    return this.#find(instanceId)?.deaths ?? 0
  }

  isCause(instanceId: InstanceId): boolean {
    return (this.#find(instanceId)?.alone ?? 0) >= DEATHS_ALONE
  }

  forget(instanceId: InstanceId): void {
    this.#suspects.delete(instanceId)
  }

  #suspect(instanceId: InstanceId): Suspect {
    const found = this.#find(instanceId) ?? { lastDeathAt: 0, deaths: 0, alone: 0, group: null }
    this.#suspects.set(instanceId, found)
    return found
  }

  #find(instanceId: InstanceId): Suspect | undefined {
    const suspect = this.#suspects.get(instanceId)
    if (suspect === undefined || this.#now() - suspect.lastDeathAt < FORGET_AFTER_MS) return suspect
    this.#suspects.delete(instanceId)
    return undefined
  }
}
