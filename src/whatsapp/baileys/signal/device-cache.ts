import type { PossiblyExtendedCacheStore } from 'baileys'
import { BoundedMap } from '../../../kit/bounded-map.ts'

/**
 * Baileys' default is 5 minutes, and each expiry costs a query and discards a working Signal session. WhatsApp notifies us
 * of changes, so a list can stay much longer. The week limits the effect of a missed notification.
 */
const FRESH_MS = 7 * 86_400_000
const IN_MEMORY = 4_000
/** A device without keys may have some later. */
const LEFT_OUT_MS = 3_600_000

interface Entry {
  at: number
  devices: unknown
}

/** The stored lists, in the credential store of the open socket. */
export interface DeviceRows {
  read(type: 'devices', ids: readonly string[]): Promise<Map<string, unknown>>
  write(changes: readonly { type: 'devices'; id: string; value: unknown }[]): Promise<void>
}

/** The devices of each contact. The lists outlive the socket and the process. */
export class DeviceCache implements PossiblyExtendedCacheStore {
  readonly #memory = new BoundedMap<string, Entry | null>(IN_MEMORY)
  /** When each device may be written to again, in ms of the monotonic clock, by user and device. */
  readonly #leftOut = new BoundedMap<string, number>(IN_MEMORY)
  readonly #now: () => number
  #rows: DeviceRows | null = null

  constructor(now: () => number) {
    this.#now = now
  }

  attach(rows: DeviceRows): void {
    this.#rows = rows
  }

  async get<T>(user: string): Promise<T> {
    // Baileys' type excludes a missing list, but its code allows for one.
    return (await this.mget<T>([user]))[user] as T
  }

  async mget<T>(users: string[]): Promise<Record<string, T | undefined>> {
    const missing: string[] = []
    for (const user of users) if (!this.#memory.has(user)) missing.push(user)
    if (missing.length > 0) {
      const rows = await this.#rows?.read('devices', missing)
      for (const user of missing)
        if (!this.#memory.has(user)) this.#memory.set(user, (rows?.get(user) as Entry) ?? null)
    }
    const found: Record<string, T | undefined> = {}
    for (const user of users) {
      const entry = this.#memory.get(user)
      if (entry && this.#now() - entry.at < FRESH_MS) found[user] = this.#reachable(user, entry.devices) as T
    }
    return found
  }

  async set<T>(user: string, devices: T): Promise<void> {
    await this.mset([{ key: user, value: devices }])
  }

  async mset<T>(lists: { key: string; value: T }[]): Promise<void> {
    const rows: Parameters<DeviceRows['write']>[0][number][] = []
    for (const { key: id, value: devices } of lists) {
      const value = { at: this.#now(), devices }
      this.#memory.set(id, value)
      rows.push({ type: 'devices', id, value })
    }
    await this.#rows?.write(rows)
  }

  async del(user: string): Promise<void> {
    this.#memory.set(user, null)
    await this.#rows?.write([{ type: 'devices', id: user, value: null }])
  }

  leaveOut(user: string, device: number): void {
    this.#leftOut.set(`${user}:${device}`, performance.now() + LEFT_OUT_MS)
  }

  #reachable(user: string, devices: unknown): unknown {
    if (!Array.isArray(devices)) return devices
    const now = performance.now()
    return devices.filter(({ device = 0 }) => now >= (this.#leftOut.get(`${user}:${device}`) ?? 0))
  }

  /** Clears memory only. A logout deletes the stored lists. */
  flushAll(): void {
    this.#memory.clear()
    this.#leftOut.clear()
  }
}
