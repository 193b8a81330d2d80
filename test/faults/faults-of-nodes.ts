import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { STORES } from '../database.ts'
import type { NodeOptions } from '../rig/stage.ts'
import { TcpProxy } from '../tcp-proxy.ts'
import { type Fault, type Scene, underLoad } from './fault.ts'
import { pickOwner } from './nodes.ts'

/** A killed node's instances run elsewhere by then: a lease of 15 s, and a node that looks every 5 s. */
const TAKEOVER_WITHIN_MS = 20_000
/** A start, and linked again. */
const RESTART_WITHIN_MS = 15_000
/** After a stop in good order. */
const AT_ONCE_MS = 5_000
/** What is done again and again while something is away has pauses of some seconds between. */
const OUTAGE_OVER_WITHIN_MS = 20_000
/** Longer than a lease of 15 s. */
const FROZEN_MS = 20_000
const DEAF_MS = 30_000
const POSTGRES_AWAY_MS = [200, 8_000] as const
const LATER_MS = [2_000, 6_000] as const
const IDLE_TRANSACTION_MS = 30_000
const SHIFT_MS = 300_000
/** On SQLite nobody else has a clock to go by, and receivers refuse what is signed 5 minutes off. */
const ALONE_SHIFT_MS = 280_000
const SHIFTED_CLOCK = join(import.meta.dirname, 'shifted-clock.ts')
/** What a killed node had sent is there before what is posted after it. */
const ARRIVED_MS = 1_000

/** `kill -9` of a node; where it is one of several, it stays away until the others have taken over. */
const killed = STORES.map(store =>
  underLoad({
    name: 'kill -9',
    store,
    recoversWithinMs: TAKEOVER_WITHIN_MS,
    arrange: () => ({
      strike: async ({ stage, random, since }) => {
        const node = await pickOwner(stage, random)
        since(performance.now())
        await node.kill('SIGKILL')
        if (stage.nodes.length === 1) return void (await node.start())
        await sleep(ARRIVED_MS)
        stage.noteIncident()
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
      strike: async ({ stage, random }) => {
        const node = await pickOwner(stage, random)
        node.signal('SIGSTOP')
        await sleep(ARRIVED_MS)
        stage.noteIncident()
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
      strike: async ({ stage, random }) => {
        const node = await pickOwner(stage, random)
        const { code } = await node.kill('SIGTERM')
        if (code !== 0) throw new Error(`The node ended with ${code} after SIGTERM.`)
        if (stage.nodes.length === 1) await node.start()
      },
    }),
  }),
)

const databaseKilled = underLoad({
  name: 'PostgreSQL killed and started again',
  store: 'postgres',
  recoversWithinMs: OUTAGE_OVER_WITHIN_MS,
  arrange: () => ({
    strike: async ({ stage, random, postgres }) => {
      await postgres.crash()
      stage.noteIncident()
      await sleep(random.between(...POSTGRES_AWAY_MS))
      await postgres.restart()
    },
  }),
})

/** A proxy before the database for each node. */
async function proxied(scene: ProxyOptions): Promise<TcpProxy[]> {
  const proxies: TcpProxy[] = []
  for (let n = 0; n < scene.nodes; n++) {
    const proxy = await TcpProxy.listen(scene.url, { dropNotifications: scene.dropNotifications ?? false })
    scene.cleanUp.defer(() => proxy.close())
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

function deaf(name: string, whose: (proxies: readonly TcpProxy[], scene: Scene) => readonly TcpProxy[]): Fault {
  return underLoad({
    name,
    store: 'postgres',
    recoversWithinMs: OUTAGE_OVER_WITHIN_MS,
    async arrange({ url }, cleanUp) {
      const proxies = await proxied({ url: url!, nodes: 3, cleanUp })
      return {
        nodes: proxies.map(proxy => ({ env: { DATABASE_URL: proxy.url } })),
        strike: async scene => {
          const struck = whose(proxies, scene)
          for (const proxy of struck) proxy.goDeaf()
          await sleep(ARRIVED_MS)
          scene.stage.noteIncident()
          await sleep(DEAF_MS)
          scene.stage.noteIncident()
          for (const proxy of struck) proxy.hear()
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
      strike: async ({ stage, random }) => {
        for (let jump = 0; jump < 3; jump++) {
          for (const node of stage.nodes.slice(0, 2)) node.signal('SIGUSR2')
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
    strike: async ({ stage }) => {
      const client = new pg.Client(stage.database.url!)
      await client.connect()
      await client.query('begin isolation level repeatable read')
      await client.query('select count(*) from deliveries')
      await sleep(IDLE_TRANSACTION_MS)
      await client.end()
    },
  }),
})

export const FAULTS_OF_NODES: readonly Fault[] = [
  ...killed,
  ...frozen,
  ...stopped,
  databaseKilled,
  deaf('connections of one node cut silently for 30 s', (proxies, { random }) => [proxies[random.integer(0, 2)]!]),
  deaf('connections of all nodes cut silently for 30 s', proxies => proxies),
  notifyLost,
  ...clocks,
  idleTransaction,
]
