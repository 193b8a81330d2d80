import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { killOnExit } from '../kill-on-exit.ts'
import { until } from '../until.ts'
import { freePort } from './free-port.ts'

const PROGRAM = '/usr/bin/redis-server'

/** Whether Debian's package redis-server is installed. */
export const HAS_REDIS = existsSync(PROGRAM)

/** Starts an empty server that requires this password. */
export async function startRedis(password: string): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-redis-'))
  const port = await freePort()
  const settings = { bind: '127.0.0.1', port, requirepass: password, save: '', dir: folder }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  const child = spawn(PROGRAM, args, { stdio: 'ignore' })
  killOnExit(child)
  const ended = new Promise(resolve => child.once('exit', resolve))
  const url = `redis://:${password}@127.0.0.1:${port}/6`
  await until('Redis', () => isReady(url))
  return {
    url,
    async stop() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

async function isReady(url: string): Promise<boolean> {
  const client = createClient({ url, socket: { reconnectStrategy: false } }).on('error', () => undefined)
  try {
    await client.connect()
    await client.ping()
    return true
  } catch {
    return false
  } finally {
    if (client.isOpen) client.destroy()
  }
}
