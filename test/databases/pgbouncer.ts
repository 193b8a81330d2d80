import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { chown } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { killOnExit } from '../kill-on-exit.ts'
import { until } from '../until.ts'
import { freePort } from './free-port.ts'

const PROGRAM = '/usr/sbin/pgbouncer'
/** PgBouncer refuses to run as root. */
const NOBODY = { uid: 65_534, gid: 65_534 }

/** Whether Debian's package pgbouncer is installed. */
export const HAS_PGBOUNCER = existsSync(PROGRAM)

/** Starts the real PgBouncer with its defaults, except mode and addresses, before a server that trusts everybody. */
export async function startPgBouncer(
  databaseUrl: string,
  mode: 'session' | 'transaction',
  more: Record<string, string | number> = {},
): Promise<{ url: string; stop(): Promise<void> }> {
  const target = new URL(databaseUrl)
  const folder = mkdtempSync(join(tmpdir(), 'pombal-pgbouncer-'))
  const port = await freePort()
  const users = join(folder, 'users.txt')
  writeFileSync(users, `"${target.username}" ""\n`)
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    pool_mode: mode,
    ...more,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(file, `[databases]\n* = host=127.0.0.1 port=${target.port}\n[pgbouncer]\n${lines.join('\n')}\n`)
  const isRoot = process.getuid?.() === 0
  if (isRoot) for (const path of [folder, users, file]) await chown(path, NOBODY.uid, NOBODY.gid)
  const child = spawn(PROGRAM, ['--quiet', file], { stdio: 'ignore', ...(isRoot && NOBODY) })
  killOnExit(child)
  const ended = new Promise(resolve => child.once('exit', resolve))
  await until('PgBouncer', () => isListening(port))
  const url = new URL(databaseUrl)
  url.port = String(port)
  return {
    url: url.href,
    async stop() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })
}
