import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startPostgres } from '../test/databases/postgres.ts'
import { readOptions } from './command-line.ts'
import { startRoundRobin } from './round-robin.ts'

/**
 * `npm run cluster`: the set-up of compose.yaml without Docker, to try out several nodes. Starts PostgreSQL from npm, the
 * nodes, and a proxy that distributes connections to them in turn. Erases all data at the end.
 */

const PROGRAM = join(import.meta.dirname, '../bin/pombal.js')
const START_WITHIN_MS = 60_000
/** A stopped node is restarted after this time. Until then, the other nodes can be seen taking over. */
const RESTART_AFTER_MS = 10_000
const LISTENS = /listens on http:\/\/[^:]+:(\d+)/
const SHOWN_FROM_LEVEL = 40

const USAGE = 'usage: npm run cluster -- [--nodes 3] [--port 8080]'

const { values } = readOptions(USAGE, {
  nodes: { type: 'string', default: '3' },
  port: { type: 'string', default: '8080' },
})
const count = Number(values.nodes)
const port = Number(values.port)
if (!Number.isInteger(count) || count < 1 || !Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(USAGE)
  process.exit(2)
}

const say = (line: string) => process.stdout.write(`${line}\n`)
const ports = new Map<number, number>()
const running = new Map<number, ChildProcess>()
let stopping = false

/** Resolves with its port once it listens. */
function startNode(number: number, env: Record<string, string>): Promise<number> {
  const child = spawn(process.execPath, [PROGRAM], {
    env: { ...process.env, HOST: '127.0.0.1', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Ctrl-C must reach only this process, which then stops the nodes.
    detached: true,
  })
  running.set(number, child)
  /** What it has written before it listens. */
  const errors: string[] = []
  child.on('close', (code, signal) => {
    const hasListened = ports.delete(number)
    running.delete(number)
    if (stopping) return
    if (!hasListened) for (const line of errors) say(`[node ${number}] ${line}`)
    say(`node ${number} ended (${signal ?? code}); it restarts in ${RESTART_AFTER_MS / 1_000} s`)
    setTimeout(() => {
      if (!stopping)
        void startNode(number, env).then(at => say(`node ${number} is back on port ${at}, pid ${pidOf(number)}`))
    }, RESTART_AFTER_MS)
  })
  return new Promise((resolve, reject) => {
    const giveUp = setTimeout(() => reject(new Error(`Node ${number} did not start.`)), START_WITHIN_MS)
    for (const stream of [child.stdout, child.stderr]) {
      createInterface(stream).on('line', line => {
        const found = LISTENS.exec(line)
        if (found) {
          clearTimeout(giveUp)
          ports.set(number, Number(found[1]))
          resolve(Number(found[1]))
        }
        if (stream === child.stderr && !ports.has(number)) errors.push(line)
        if (isWorthShowing(line)) say(`[node ${number}] ${line}`)
      })
    }
  })
}

function pidOf(number: number): number | undefined {
  return running.get(number)?.pid
}

/** Shows warnings, errors and the distribution of instances, but not the banner. */
function isWorthShowing(line: string): boolean {
  if (!line.startsWith('{')) return false
  const { level, msg } = JSON.parse(line) as { level: number; msg?: string }
  return level >= SHOWN_FROM_LEVEL || msg === 'leases.shared'
}

say('Starting PostgreSQL …')
const database = await startPostgres({ fsync: true })
// Not the folder of a single node, which would refuse to run on PostgreSQL before its data is moved.
const folder = mkdtempSync(join(tmpdir(), 'pombal-cluster-'))
const env = {
  DATA_DIR: folder,
  DATABASE_URL: await database.createDatabase(),
  ADMIN_KEY: process.env['ADMIN_KEY'] ?? randomBytes(24).toString('hex'),
  MASTER_KEY: process.env['MASTER_KEY'] ?? randomBytes(32).toString('base64'),
}
const proxy = await startRoundRobin(port, () => [...ports.values()])
const url = `http://127.0.0.1:${proxy.port}`

async function stop(): Promise<void> {
  if (stopping) return
  stopping = true
  say('Stopping …')
  const children = [...running.values()]
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(children.map(child => child.exitCode === null && child.signalCode === null && once(child, 'close')))
  await proxy.close()
  await database.stop()
  process.exit(0)
}
process.on('SIGINT', () => void stop())
process.on('SIGTERM', () => void stop())
process.on('SIGHUP', () => void stop())
// Also ends the nodes if this script throws. (A SIGKILL of this process leaves them running.)
process.on('exit', () => {
  for (const child of running.values()) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

await Promise.all(Array.from({ length: count }, (_, index) => startNode(index + 1, env)))

say(`
  ${count} nodes on one PostgreSQL, behind ${url}
  Panel      ${url}
  Admin key  ${env.ADMIN_KEY}
  Database   ${env.DATABASE_URL}
${[...ports]
  .sort(([a], [b]) => a - b)
  .map(([number, at]) => `  Node ${number}     http://127.0.0.1:${at}  pid ${pidOf(number)}`)
  .join('\n')}

  Next: create a sandbox instance in the panel and send with it. Then kill a node, and watch the others take over:

    kill -9 ${pidOf(1)}      (its instances run elsewhere 15 s later; with kill -TERM, at once)

  Ctrl-C stops everything and erases all data.
`)
