import { pino } from 'pino'
import { vi } from 'vitest'
import { Supervisor } from '../../src/instances/supervisor.ts'
import { LocalHints } from '../../src/store/hints.ts'
import type { Attendance, HeldLease, Lease, Leases } from '../../src/store/leases/leases.ts'
import { Renewal } from '../../src/store/leases/renewal.ts'

/** The lease table, as seen by one of several nodes. */
class LeaseTable implements Leases {
  readonly rows = new Map<string, { owner: string | null; epoch: number }>()
  failing = false
  nodes = 1
  nextLapseMs: number | null = null

  add(instanceId: string): void {
    this.rows.set(instanceId, { owner: null, epoch: 0 })
  }

  async acquire(owner: string, limit: number): Promise<HeldLease[]> {
    this.#check()
    const free = [...this.rows].filter(([, row]) => row.owner === null).slice(0, limit)
    return free.map(([instanceId, row]) => {
      row.owner = owner
      row.epoch += 1
      return { instanceId, owner, epoch: row.epoch, kind: 'whatsapp' }
    })
  }

  async acquireLeftOver(): Promise<HeldLease[]> {
    return []
  }

  async attend(): Promise<Attendance> {
    const whatsapp = Math.ceil(this.rows.size / this.nodes)
    return {
      shares: { whatsapp, sandbox: 0 },
      leftOver: [],
      nodes: this.nodes,
      otherSettings: [],
      nextLapseMs: this.nextLapseMs,
    }
  }

  async leave(): Promise<void> {
    this.nodes -= 1
  }

  async renew(owner: string): Promise<HeldLease[]> {
    this.#check()
    return [...this.rows]
      .filter(([, row]) => row.owner === owner)
      .map(([instanceId, row]) => ({ instanceId, owner, epoch: row.epoch, kind: 'whatsapp' }))
  }

  async release(lease: Lease): Promise<void> {
    const row = this.rows.get(lease.instanceId)
    if (row?.epoch === lease.epoch) row.owner = null
  }

  #check(): void {
    if (this.failing) throw new Error('the store is unavailable')
  }
}

/** A supervisor on manual time, with a log of what it does to its instances. */
export function setUp(ids: string[]) {
  vi.useFakeTimers()
  const leases = new LeaseTable()
  for (const id of ids) leases.add(id)
  const hints = new LocalHints()
  const log: string[] = []
  /** For each renewal of the leases: the last line of the log at that moment. */
  const loggedBeforeRenewal: (string | undefined)[] = []
  let sockets = 0
  let mostSockets = 0
  const lost = new Map<string, () => void>()
  const crashed = new Map<string, () => void>()
  const linking = new Set<string>()
  /** How long the attempts in flight last while the instance drains, if not 300 ms. */
  const drainMs = new Map<string, number>()
  /** How far the wall clock is ahead of the monotonic clock, which timers use. */
  const wall = { aheadMs: 0 }
  const renewal = new Renewal({ steady: () => Date.now(), now: () => Date.now() + wall.aheadMs })
  const supervisor = new Supervisor({
    leases,
    hints,
    owner: 'me',
    logger: pino({ level: 'silent' }),
    renewal,
    onRenewed: () => loggedBeforeRenewal.push(log.at(-1)),
    run: (lease, { onLeaseLost, onCrashed }) => {
      log.push(`run ${lease.instanceId} ${lease.epoch}`)
      sockets += 1
      mostSockets = Math.max(mostSockets, sockets)
      lost.set(lease.instanceId, onLeaseLost)
      crashed.set(lease.instanceId, onCrashed)
      return {
        get isLinking() {
          return linking.has(lease.instanceId)
        },
        onGoalChanged: () => log.push(`goal ${lease.instanceId}`),
        revoke: () => log.push(`revoke ${lease.instanceId}`),
        drain: async () => {
          log.push(`drain ${lease.instanceId}`)
          await new Promise(resolve => setTimeout(resolve, drainMs.get(lease.instanceId) ?? 300))
        },
        resume: () => log.push(`resume ${lease.instanceId}`),
        stop: async held => {
          await new Promise(resolve => setTimeout(resolve, 100))
          sockets -= 1
          log.push(`stop ${lease.instanceId} ${held ? 'held' : 'lost'}`)
        },
      }
    },
  })
  return {
    leases,
    hints,
    log,
    loggedBeforeRenewal,
    lost,
    crashed,
    linking,
    drainMs,
    wall,
    supervisor,
    renewal,
    mostSockets: () => mostSockets,
  }
}

/** Lets this time pass. */
export const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)
