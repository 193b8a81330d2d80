import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AdminClient, adminClient } from '../../test/api-client.ts'
import { until } from '../../test/until.ts'
import type { BenchDatabase } from './databases.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/pombal.js')
const START_WITHIN_MS = 60_000
const STOP_WITHIN_MS = 20_000
/** USER_HZ is 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10

export interface RunningService extends AsyncDisposable {
  readonly pid: number
  readonly url: string
  readonly admin: AdminClient
  /** Sends SIGTERM, as an operator would. Disposing of it does the same. */
  stop(): Promise<void>
}

/**
 * The service as `npm start` runs it, in its own process with its usual log (to a file). Differences: the rate limit is
 * raised, the sandbox is off, and `env` is added.
 */
export async function startService(
  { storeOptions }: BenchDatabase,
  env: Record<string, string> = {},
  nodeArguments: readonly string[] = [],
): Promise<RunningService> {
  const { dataDir, databaseUrl, masterKey, ratePerMinute } = storeOptions
  const adminKey = randomBytes(32).toString('hex')
  const logFile = join(dataDir, 'service.log')
  const log = openSync(logFile, 'w')
  const child = spawn(process.execPath, [...nodeArguments, ...extraArguments(), PROGRAM], {
    env: {
      PATH: process.env['PATH'],
      HOST: '127.0.0.1',
      PORT: '0',
      DATA_DIR: dataDir,
      ADMIN_KEY: adminKey,
      MASTER_KEY: Buffer.from(masterKey).toString('base64'),
      RATE_LIMIT_PER_MINUTE: ratePerMinute.toString(),
      SANDBOX: 'off',
      ...(databaseUrl && { DATABASE_URL: databaseUrl }),
      ...env,
    },
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  const killOnExit = () => child.kill('SIGKILL')
  process.on('exit', killOnExit)
  child.on('exit', () => process.off('exit', killOnExit))
  const url = await until(
    'the service to listen',
    () => {
      const text = readFileSync(logFile, 'utf8')
      if (child.exitCode !== null) throw new Error(`The service ended at once:\n${text}`)
      return /listens on (\S+)/.exec(text)?.[1]
    },
    START_WITHIN_MS,
  )
  const end = () => stop(child)
  return { pid: child.pid!, url, admin: adminClient(() => url, adminKey), stop: end, [Symbol.asyncDispose]: end }
}

/** Node options for every service process, such as `--cpu-prof` for profiling. */
function extraArguments(): string[] {
  return (process.env['BENCH_SERVICE_NODE_OPTIONS'] ?? '').split(' ').filter(Boolean)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const giveUp = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
  await exited
  clearTimeout(giveUp)
}

export function residentMb(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', pid.toString()], { encoding: 'utf8' })) / 1024
}

/** Processor time used by a process so far, in ms. Linux reports it in steps of 10 ms. */
export function processorMs(pid: number): number {
  // Read after the name, which may contain anything: state is field 3, utime and stime are 14 and 15
  // (proc_pid_stat(5)).
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
}
