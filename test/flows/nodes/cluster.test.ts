import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { adminClient, instanceClient } from '../../api-client.ts'
import { START_WITHIN_MS } from '../../deadlines.ts'
import { until } from '../../until.ts'

const PROGRAM = join(import.meta.dirname, '../../../scripts/cluster.ts')

function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.once('close', () => undefined).unref()
  })
}

/** Runs the script in a folder where `npm start` has run once. */
function startCluster(env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-cluster-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'pombal.db'), '')
  const cluster = spawn(process.execPath, [PROGRAM, '--nodes', '2', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: folder,
    env: { PATH: process.env['PATH'], ...env },
  })
  return { cluster, dataDir }
}

test('npm run cluster runs nodes behind one address and survives the kill of one; Ctrl-C ends everything', async () => {
  const { cluster, dataDir } = startCluster()
  let output = ''
  for (const stream of [cluster.stdout, cluster.stderr]) stream.on('data', text => (output += text))
  try {
    const url = await until('the address', () => /behind (http:\S+)[\s\S]*Ctrl-C/.exec(output)?.[1], START_WITHIN_MS)
    const adminKey = /Admin key\s+(\S+)/.exec(output)?.[1] ?? ''
    const nodes = [...output.matchAll(/Node \d\s+http:\/\/127\.0\.0\.1:(\d+)\s+pid (\d+)/g)]
    expect(new Set(nodes.map(([, port]) => port)).size).toBe(2)
    const admin = adminClient(() => url, adminKey)
    const { id, token } = await admin.createConnected()
    process.kill(Number(nodes[0]?.[2]), 'SIGKILL')
    await until('the node to be gone', () => output.includes('node 1 ended'))
    // Connections to the removed node are closed, and their callers retry.
    const instance = instanceClient(() => url, id, token)
    const sent = await until('an accepted message', () => instance.send('5511987654321', 'Hello').catch(() => null))
    const status = () => instance.message(sent.id).catch(() => null)
    await until('it to be read', async () => (await status())?.status === 'read')
    cluster.kill('SIGINT')
    expect(await once(cluster, 'close')).toEqual([0, null])
    expect(readdirSync(dataDir)).toEqual(['pombal.db'])
    const databasePort = Number(/127\.0\.0\.1:(\d+)\/test_/.exec(output)?.[1])
    for (const port of [databasePort, ...nodes.map(node => Number(node[1]))]) {
      expect(await isListening(port)).toBe(false)
    }
  } finally {
    if (cluster.exitCode === null && cluster.signalCode === null) cluster.kill('SIGINT')
  }
})

test('npm run cluster shows why a node does not start', async () => {
  const { cluster } = startCluster({ RETENTION_DAYS: 'many' })
  let output = ''
  cluster.stdout.on('data', text => (output += text))
  try {
    const problem = /\[node 1\] +- RETENTION_DAYS must be/
    await until('the reason', () => problem.test(output), START_WITHIN_MS)
  } finally {
    cluster.kill('SIGINT')
  }
  expect(await once(cluster, 'close')).toEqual([0, null])
})
