import type { Fetch, FullPlaces } from '../../store/media/fetches.ts'

/** The most fetches at the same time. A slow host takes at most half of the places of its instance. */
export const AT_ONCE = { node: 32, instance: 4, host: 2 }

/** Limits how many files are fetched at once, so that a slow host delays nobody else. */
export class Places {
  readonly #running = new Set<Fetch>()

  get size(): number {
    return this.#running.size
  }

  get isFull(): boolean {
    return this.#running.size >= AT_ONCE.node
  }

  begin(fetch: Fetch): Disposable {
    this.#running.add(fetch)
    return { [Symbol.dispose]: () => void this.#running.delete(fetch) }
  }

  /** The instances and hosts without a free place. While half of the node's places are in use, an instance has one place. */
  full(): FullPlaces {
    const most = this.#running.size >= AT_ONCE.node / 2 ? 1 : AT_ONCE.instance
    const running = [...this.#running]
    const ofInstances = Map.groupBy(running, ({ instanceId }) => instanceId)
    const ofHosts = Map.groupBy(running, ({ instanceId, host }) => `${instanceId} ${host}`)
    return {
      instances: [...ofInstances].flatMap(([id, { length }]) => (length >= most ? [id] : [])),
      hosts: [...ofHosts.values()].flatMap(fetches => (fetches.length >= AT_ONCE.host ? fetches.slice(0, 1) : [])),
    }
  }
}
