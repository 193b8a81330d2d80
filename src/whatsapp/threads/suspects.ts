import type { InstanceId } from '../../domain/ids.ts'

/** Deaths that are further apart are treated as unrelated. */
const WINDOW_MS = 10 * 60_000
/** An instance is the cause once this many threads that ran only this instance have died. */
const DEATHS_ALONE = 3
/**
 * The same if other threads died at about the same time. Otherwise, if two instances are the causes, each would make the
 * deaths of the other look like a common cause for ever. More, because the threads of innocent instances may die together too.
 */
const DEATHS_TOGETHER = 8
/** Threads that die within this time of one another have a common cause, such as a machine without memory. */
const TOGETHER_MS = 30_000
/** Each group has a thread of its own. Enough to find one cause among thousands of instances. */
const MAX_GROUPS = 16

interface Suspect {
  lastDeathAt: number
  /** Deaths of its threads. */
  deaths: number
  /** Deaths of threads that ran only this instance. `isExcused`: another thread died at about the same time. */
  alone: { at: number; isExcused: boolean }[]
  /** The suspects of one group have a thread that runs no other instance. Null: any thread. */
  group: number | null
}

/**
 * Finds the instance that kills its threads, because nothing else names it: an endless loop and exhausted memory leave no
 * trace. The instances of a dead thread start again as before. If their threads die again, each half of them gets a thread
 * of its own, until the cause is alone in one. Threads that die together have a common cause, unless that happens often.
 */
export class Suspects {
  readonly #now: () => number
  readonly #suspects = new Map<InstanceId, Suspect>()
  #lastGroup = 0
  /** The last death of any thread, and the instances that it ran. */
  #lastDeath: { at: number; of: string } | null = null

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** A thread died while it ran these instances. */
  noteDeath(instances: readonly InstanceId[]): void {
    const now = this.#now()
    for (const [instanceId, { lastDeathAt }] of this.#suspects)
      if (now - lastDeathAt >= WINDOW_MS) this.#suspects.delete(instanceId)
    const suspects = instances.map(instanceId => this.#suspect(instanceId))
    const isRepeated = suspects.every(({ deaths }) => deaths > 0)
    const isAlone = instances.length === 1
    const isExcused = this.#diedTogether(instances, now)
    for (const suspect of suspects) {
      suspect.deaths += 1
      suspect.lastDeathAt = now
      if (isAlone) suspect.alone.push({ at: now, isExcused })
    }
    this.#lastDeath = { at: now, of: instances.join() }
    if (isRepeated && (isAlone || this.#groups < MAX_GROUPS)) this.#halve(suspects)
  }

  groupOf(instanceId: InstanceId): number | null {
    return this.#find(instanceId)?.group ?? null
  }

  deathsOf(instanceId: InstanceId): number {
    return this.#find(instanceId)?.deaths ?? 0
  }

  isCause(instanceId: InstanceId): boolean {
    const since = this.#now() - WINDOW_MS
    const deaths = (this.#find(instanceId)?.alone ?? []).filter(({ at }) => at > since)
    return deaths.length >= DEATHS_TOGETHER || deaths.filter(({ isExcused }) => !isExcused).length >= DEATHS_ALONE
  }

  forget(instanceId: InstanceId): void {
    this.#suspects.delete(instanceId)
  }

  get #groups(): number {
    return new Set([...this.#suspects.values()].map(({ group }) => group)).size
  }

  #diedTogether(instances: readonly InstanceId[], now: number): boolean {
    const last = this.#lastDeath
    return last !== null && now - last.at < TOGETHER_MS && !last.of.includes(instances[0]!)
  }

  #halve(suspects: readonly Suspect[]): void {
    const middle = Math.ceil(suspects.length / 2)
    for (const half of [suspects.slice(0, middle), suspects.slice(middle)]) {
      this.#lastGroup += 1
      for (const suspect of half) suspect.group = this.#lastGroup
    }
  }

  #suspect(instanceId: InstanceId): Suspect {
    const found = this.#find(instanceId) ?? { lastDeathAt: 0, deaths: 0, alone: [], group: null }
    this.#suspects.set(instanceId, found)
    return found
  }

  #find(instanceId: InstanceId): Suspect | undefined {
    const suspect = this.#suspects.get(instanceId)
    return suspect && this.#now() - suspect.lastDeathAt < WINDOW_MS ? suspect : undefined
  }
}
