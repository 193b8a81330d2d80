import { createHash, randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { createDatabase, STORES } from '../databases/database.ts'
import { queryPostgres } from '../databases/query-postgres.ts'
import { Random } from '../rig/random.ts'
import { Service } from '../service.ts'
import { type Fault, type FaultReport, underLoad } from './fault.ts'
import { openPreviousVersion } from './previous-version.ts'

const KILLS = 4
const NODES = 3
const INSTANCES = 20
const PAGE_BYTES = 4_096
const RECOVERS_WITHIN_MS = 20_000

/** The report of a fault without load. */
function reportOf(violations: readonly string[], recoveredMs: number): FaultReport {
  return { accepted: 0, lost: 0, doubled: 0, outOfOrder: 0, repeated: 0, recoveredMs, violations }
}

// ── Damaged and foreign files ─────────────────────────────────────────────────────────────────────────

const DAMAGES: readonly { name: string; damage(file: string): void }[] = [
  { name: 'random bytes', damage: file => writeFileSync(file, randomBytes(64 * 1_024)) },
  {
    name: 'a text',
    damage: file => writeFileSync(file, 'This is somebody’s shopping list, and no database.\n'.repeat(99)),
  },
  {
    name: 'cut in half',
    damage: file => truncateSync(file, Math.floor(statSync(file).size / 2 / PAGE_BYTES) * PAGE_BYTES),
  },
  { name: 'its first pages are zeros', damage: file => overwrite(file, 0, Buffer.alloc(2 * PAGE_BYTES)) },
  { name: 'pages of its tables are zeros', damage: file => overwrite(file, PAGE_BYTES, Buffer.alloc(20 * PAGE_BYTES)) },
  {
    name: 'the database of another program',
    damage: file => {
      rmSync(file)
      const other = new Sqlite(file)
      other.exec('create table messages (id integer primary key, body text); create table songs (title text)')
      other.close()
    },
  },
]

function overwrite(file: string, at: number, bytes: Buffer): void {
  const whole = readFileSync(file)
  bytes.copy(whole, at)
  writeFileSync(file, whole)
}

const badFiles: Fault = {
  name: 'a corrupt or foreign database file',
  store: 'sqlite',
  async run() {
    const violations: string[] = []
    const service = await new Service().start()
    const folder = mkdtempSync(join(tmpdir(), 'pombal-kept-'))
    try {
      const { id } = await service.admin.createInstance('whatsapp')
      await service.kill('SIGTERM')
      const file = join(service.dataDir, 'pombal.db')
      cpSync(service.dataDir, folder, { recursive: true })
      for (const { name, damage } of DAMAGES) {
        cpSync(folder, service.dataDir, { recursive: true })
        damage(file)
        violations.push(...(await refusedUntouched(service, file)).map(text => `${name}: ${text}`))
      }
      const startedAt = performance.now()
      rmSync(file)
      cpSync(folder, service.dataDir, { recursive: true })
      await service.start()
      const recoveredMs = performance.now() - startedAt
      if ((await service.admin.connection(id)).state !== 'unlinked') violations.push('The instance is lost.')
      return reportOf(violations, recoveredMs)
    } finally {
      await service.dispose()
      rmSync(folder, { recursive: true })
    }
  },
}

async function refusedUntouched(service: Service, file: string): Promise<string[]> {
  const before = digestOf(file)
  service.boot()
  const { code } = await service.exited()
  const violations: string[] = []
  if (code !== 1) violations.push(`it ended with ${code}.`)
  if (!service.output.startsWith('Pombal cannot start:') || service.output.includes('    at '))
    violations.push(`it said: ${service.output.slice(0, 500)}`)
  if (digestOf(file) !== before) violations.push('the file was changed.')
  return violations
}

function digestOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}

// ── Migrations ─────────────────────────────────────────────────────────────────────────────────────────────────────

const interrupted = STORES.map(
  (store): Fault => ({
    name: 'kill -9 in a migration',
    store,
    async run({ seed, postgres, say }) {
      await using cleanUp = new AsyncDisposableStack()
      const random = new Random(seed)
      const previous = openPreviousVersion()
      cleanUp.defer(() => previous.dispose())
      const database = await createDatabase(store, postgres.url)
      cleanUp.defer(() => database.dispose())
      const dataDir = mkdtempSync(join(tmpdir(), 'pombal-migrated-'))
      cleanUp.defer(() => rmSync(dataDir, { recursive: true }))
      const before = new Service({ dataDir, env: database.env, program: previous.program })
      cleanUp.defer(() => before.dispose())
      const startedAt = performance.now()
      await before.start()
      const startUpMs = performance.now() - startedAt
      const ids: string[] = []
      for (let n = 0; n < INSTANCES; n++) ids.push((await before.admin.createInstance('whatsapp')).id)
      await before.kill('SIGTERM')
      const service = new Service({ dataDir, env: database.env })
      cleanUp.defer(() => service.dispose())
      for (let kill = 0; kill < KILLS; kill++) {
        service.boot()
        await sleep(random.between(startUpMs / 2, startUpMs * 1.2))
        await service.kill('SIGKILL')
      }
      say(`killed ${KILLS} times`)
      const restartedAt = performance.now()
      await service.start()
      const recoveredMs = performance.now() - restartedAt
      const violations: string[] = []
      for (const id of ids) {
        const { state } = await service.admin.connection(id)
        if (state !== 'unlinked') violations.push(`${id} is ${state} after the migration.`)
      }
      return reportOf(violations, recoveredMs)
    },
  }),
)

const atOnce: Fault = {
  name: 'three nodes migrate at once',
  store: 'postgres',
  async run({ postgres, say }) {
    await using cleanUp = new AsyncDisposableStack()
    const previous = openPreviousVersion()
    cleanUp.defer(() => previous.dispose())
    const violations: string[] = []
    let recoveredMs = 0
    for (const from of ['nothing', 'the previous version'] as const) {
      const database = await createDatabase('postgres', postgres.url)
      cleanUp.defer(() => database.dispose())
      if (from === 'the previous version') {
        const before = new Service({ env: database.env, program: previous.program })
        cleanUp.defer(() => before.dispose())
        await before.start()
        await before.admin.createInstance('whatsapp')
        await before.kill('SIGTERM')
      }
      const nodes = Array.from({ length: NODES }, () => new Service({ env: database.env }))
      for (const node of nodes) cleanUp.defer(() => node.dispose())
      const startedAt = performance.now()
      const starts = await Promise.allSettled(nodes.map(node => node.start()))
      recoveredMs = Math.max(recoveredMs, performance.now() - startedAt)
      for (const start of starts) if (start.status === 'rejected') violations.push(`From ${from}: ${start.reason}`)
      const steps = await queryPostgres<{ name: string }>(database.url!, 'select name from kysely_migration')
      say(`from ${from}: ${steps.length} steps`)
      if (new Set(steps.map(({ name }) => name)).size < steps.length) violations.push('A migration ran twice.')
      await nodes[0]!.admin.createInstance('whatsapp')
      await Promise.all(nodes.map(node => node.dispose()))
    }
    return reportOf(violations, recoveredMs)
  },
}

const rolling = underLoad({
  name: 'rolling restart from the previous schema',
  store: 'postgres',
  recoversWithinMs: RECOVERS_WITHIN_MS,
  repeats: 'none',
  arrange(_, cleanUp) {
    const previous = openPreviousVersion()
    cleanUp.defer(() => previous.dispose())
    return {
      nodes: Array.from({ length: NODES }, () => ({ program: previous.program })),
      strike: async ({ harness, say }) => {
        for (let index = 0; index < NODES; index++) {
          await harness.nodes[index]!.kill('SIGTERM')
          await (await harness.replaceNode(index, {})).start()
          say(`node ${index + 1} runs the new version`)
        }
      },
    }
  },
})

export const START_FAULTS: readonly Fault[] = [badFiles, ...interrupted, atOnce, rolling]
