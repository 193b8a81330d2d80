import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Connection, createConnection } from 'mysql2/promise'
import { killOnExit } from '../kill-on-exit.ts'
import { until } from '../until.ts'
import { freePort } from './free-port.ts'

const PROGRAM = '/usr/sbin/mariadbd'
/** The system tables, as `mariadb-install-db` creates them. That program is incomplete without the packages of the clients. */
const SYSTEM_TABLES = ['mysql_system_tables.sql', 'mysql_system_tables_data.sql'].map(
  file => `/usr/share/mysql/${file}`,
)

/** Whether Debian's package mariadb-server-core is installed. */
export const HAS_MARIADB = [PROGRAM, ...SYSTEM_TABLES].every(file => existsSync(file))

export interface MariaDb {
  /** A connection of the server's administrator. */
  root: Connection
  port: number
  stop(): Promise<void>
}

/** Starts an empty server. */
export async function startMariadb(): Promise<MariaDb> {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-mariadb-'))
  const common = ['--no-defaults', `--datadir=${folder}/data`, ...(process.getuid?.() === 0 ? ['--user=root'] : [])]
  mkdirSync(`${folder}/data`)
  const tables = SYSTEM_TABLES.map(file => readFileSync(file, 'utf8'))
  // One statement a line.
  const input = ['create database mysql;', 'use mysql;', 'set @auth_root_socket = null;', ...tables].join('\n')
  execFileSync(PROGRAM, [...common, '--bootstrap'], { input, stdio: ['pipe', 'ignore', 'ignore'] })
  const { child, root, port } = await startOnFreePort([...common, `--socket=${folder}/socket`])
  return {
    root,
    port,
    async stop() {
      root.destroy()
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      rmSync(folder, { recursive: true })
    },
  }
}

/** Another program may take the port first. MariaDB then ends, and this function starts it on another port. */
async function startOnFreePort(
  options: readonly string[],
): Promise<{ child: ChildProcess; root: Connection; port: number }> {
  const port = await freePort()
  const child = spawn(PROGRAM, [...options, '--bind-address=127.0.0.1', `--port=${port}`], { stdio: 'ignore' })
  killOnExit(child)
  const connect = () => createConnection({ host: '127.0.0.1', port, user: 'root' }).catch(() => null)
  const root = await until('MariaDB', async () => (child.exitCode === null ? connect() : 'ended'))
  return root === 'ended' ? startOnFreePort(options) : { child, root, port }
}
