import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { STORES } from '../databases/database.ts'
import type { NodeOptions } from '../rig/harness.ts'
import { TcpProxy } from '../tcp-proxy.ts'
import { type Fault, type StrikeContext, underLoad } from './fault.ts'
import { pickOwner } from './pick-owner.ts'

/** By then another node runs a killed node's instances: a lease of 15 s, and a poll every 5 s. */
const TAKEOVER_WITHIN_MS = 20_000
/** A start and a login. */
const RESTART_WITHIN_MS = 15_000
/** After a graceful stop. */
const AT_ONCE_MS = 5_000
/** Retries during an outage have pauses of some seconds. */
const OUTAGE_OVER_WITHIN_MS = 20_000
/** Longer than a lease of 15 s. */
const FROZEN_MS = 20_000
const CUT_MS = 30_000
const POSTGRES_AWAY_MS = [200, 8_000] as const
const LATER_MS = [2_000, 6_000] as const
const IDLE_TRANSACTION_MS = 30_000
const SHIFT_MS = 300_000
/** On SQLite only the machine has a clock, and receivers refuse signatures that are 5 minutes off. */
const ALONE_SHIFT_MS = 280_000
const SHIFTED_CLOCK = join(import.meta.dirname, 'shifted-clock.ts')
/** Requests that a node sent before the fault arrive within this time. */
const ARRIVED_MS = 1_000

/** `kill -9` of a node. With several nodes it does not come back; a single node is started again. */
const killed = STORES.map(store =>
  underLoad({
    name: 'kill -9',
    store,
    recoversWithinMs: TAKEOVER_WITHIN_MS,
    arrange: () => ({
      strike: async ({ harness, random, since }) => {
        const node = await pickOwner(harness, random)
        since(performance.now())
        await node.kill('SIGKILL')
        if (harness.nodes.length === 1) return void (await node.start())
        await sleep(ARRIVED_MS)
        harness.noteIncident()
      },
    }),
  }),
)

const frozen = STORES.map(store =>
  underLoad({
    name: 'SIGSTOP past the lease, then SIGCONT',
    store,
    recoversWithinMs: OUTAGE_OVER_WITHIN_MS,
    arrange: () => ({
      strike: async ({ harness, random }) => {
        const node = await pickOwner(harness, random)
        node.signal('SIGSTOP')
        await sleep(ARRIVED_MS)
        harness.noteIncident()
        await sleep(FROZEN_MS)
        node.signal('SIGCONT')
      },
    }),
  }),
)

const stopped = STORES.map(store =>
  underLoad({
    name: 'SIGTERM',
    store,
    recoversWithinMs: store === 'sqlite' ? RESTART_WITHIN_MS : AT_ONCE_MS,
    repeats: 'none',
    arrange: () => ({
      strike: async ({ harness, random }) => {
        const node = await pickOwner(harness, random)
        const { code } = await node.kill('SIGTERM')
        if (code !== 0) throw new Error(`The node ended with ${code} after SIGTERM.`)
        if (harness.nodes.length === 1) await node.start()
      },
    }),
  }),
)

const databaseKilled = underLoad({
  name: 'PostgreSQL killed and started again',
  store: 'postgres',
  recoversWithinMs: OUTAGE_OVER_WITHIN_MS,
  arrange: () => ({
    strike: async ({ harness, random, postgres }) => {
      await postgres.crash()
      harness.noteIncident()
      await sleep(random.between(...POSTGRES_AWAY_MS))
      await postgres.restart()
    },
  }),
})

/** Creates a proxy between the database and each node. */
async function proxied(options: ProxyOptions): Promise<TcpProxy[]> {
  const proxies: TcpProxy[] = []
  for (let n = 0; n < options.nodes; n++) {
    const proxy = await TcpProxy.listen(options.url, { dropNotifications: options.dropNotifications ?? false })
    options.cleanUp.defer(() => proxy.close())
    proxies.push(proxy)
  }
  return proxies
}

interface ProxyOptions {
  url: string
  nodes: number
  dropNotifications?: boolean
  cleanUp: AsyncDisposableStack
}

function connectionsCut(
  name: string,
  whose: (proxies: readonly TcpProxy[], context: StrikeContext) => readonly TcpProxy[],
): Fault {
  return underLoad({
    name,
    store: 'postgres',
    recoversWithinMs: OUTAGE_OVER_WITHIN_MS,
    async arrange({ url }, cleanUp) {
      const proxies = await proxied({ url: url!, nodes: 3, cleanUp })
      return {
        nodes: proxies.map(proxy => ({ env: { DATABASE_URL: proxy.url } })),
        strike: async context => {
          const struck = whose(proxies, context)
          for (const proxy of struck) proxy.blackhole()
          await sleep(ARRIVED_MS)
          context.harness.noteIncident()
          await sleep(CUT_MS)
          context.harness.noteIncident()
          for (const proxy of struck) proxy.restore()
        },
      }
    },
  })
}

const notifyLost = underLoad({
  name: 'NOTIFY lost altogether',
  store: 'postgres',
  recoversWithinMs: OUTAGE_OVER_WITHIN_MS,
  async arrange({ url }, cleanUp) {
    const proxies = await proxied({ url: url!, nodes: 3, dropNotifications: true, cleanUp })
    return {
      nodes: proxies.map(proxy => ({ env: { DATABASE_URL: proxy.url } })),
      strike: async ({ random, say }) => {
        await sleep(random.between(...LATER_MS))
        say(`${proxies.reduce((sum, { dropped }) => sum + dropped, 0)} notifications dropped`)
      },
    }
  },
})

function clockOff(...shiftsMs: number[]): NodeOptions {
  return { nodeOptions: ['--import', SHIFTED_CLOCK], env: { CLOCK_SHIFTS_MS: shiftsMs.join(',') } }
}

const clocks = STORES.map(store =>
  underLoad({
    name: 'clock off by 5 min, and jumping',
    store,
    clockJumps: store === 'sqlite',
    recoversWithinMs: OUTAGE_OVER_WITHIN_MS,
    arrange: () => ({
      nodes:
        store === 'sqlite'
          ? [clockOff(0, -ALONE_SHIFT_MS, ALONE_SHIFT_MS, 0)]
          : [clockOff(SHIFT_MS, 0, -SHIFT_MS, SHIFT_MS), clockOff(-SHIFT_MS, SHIFT_MS, 0, -SHIFT_MS), {}],
      strike: async ({ harness, random }) => {
        for (let jump = 0; jump < 3; jump++) {
          for (const node of harness.nodes.slice(0, 2)) node.signal('SIGUSR2')
          await sleep(random.between(...LATER_MS))
        }
      },
    }),
  }),
)

const idleTransaction = underLoad({
  name: 'an idle transaction pins the horizon',
  store: 'postgres',
  recoversWithinMs: OUTAGE_OVER_WITHIN_MS,
  arrange: () => ({
    strike: async ({ harness }) => {
      const client = new pg.Client(harness.database.url!)
      await client.connect()
      await client.query('begin isolation level repeatable read')
      await client.query('select count(*) from deliveries')
      await sleep(IDLE_TRANSACTION_MS)
      await client.end()
    },
  }),
})

export const NODE_FAULTS: readonly Fault[] = [
  ...killed,
  ...frozen,
  ...stopped,
  databaseKilled,
  connectionsCut('connections of one node cut silently for 30 s', (proxies, { random }) => [
    proxies[random.integer(0, 2)]!,
  ]),
  connectionsCut('connections of all nodes cut silently for 30 s', proxies => proxies),
  notifyLost,
  ...clocks,
  idleTransaction,
]
