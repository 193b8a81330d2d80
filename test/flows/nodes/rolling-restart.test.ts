import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, inject, test } from 'vitest'
import { parse } from 'yaml'
import { createDatabase } from '../../databases/database.ts'
import { LONG_TEST_WITHIN_MS, onThisMachine } from '../../deadlines.ts'
import { killOnExit } from '../../kill-on-exit.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** The program of Debian's package caddy. */
const CADDY = '/usr/bin/caddy'
const CALLERS = 4
const PAUSE_MS = 20
/** A few of the balancer's health checks. A restarted node must be healthy before the next one is restarted. */
const SETTLED_MS = 4_000
/** In a log line of an accepted call. */
const ACCEPTED = '"route":"/v1/messages/text","status":202'
const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function freePort(): Promise<number> {
  return new Promise(resolve => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

/** compose.yaml's balancer, with the addresses of this test. */
async function startBalancer(ports: readonly number[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-caddy-'))
  cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
  const root = join(import.meta.dirname, '../../..')
  const compose = parse(readFileSync(join(root, 'compose.yaml'), 'utf8'), { merge: true })
  const port = await freePort()
  const config = readFileSync(join(root, compose.configs.balancer.file), 'utf8')
    .replace(/^:8080 /m, `http://127.0.0.1:${port} `)
    .replace('admin off', 'admin off\n  auto_https off')
    .replace(/node-(\d):3000/g, (_, number) => `127.0.0.1:${ports[number - 1]}`)
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, config)
  const child = spawn(CADDY, ['run', '--config', file, '--adapter', 'caddyfile'], {
    stdio: 'ignore',
    env: { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  })
  killOnExit(child)
  cleanUps.push(() => child.kill('SIGKILL'))
  return `http://127.0.0.1:${port}`
}

/** @returns 202; any other answer with its body, or the error's code if there was no answer */
function send(url: string, token: string, agent: Agent): Promise<number | string> {
  const body = JSON.stringify({ to: '15005550003', text: 'hello' })
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': body.length,
  }
  return new Promise(resolve => {
    const call = request(`${url}/v1/messages/text`, { method: 'POST', headers, agent }, answer => {
      if (answer.statusCode === 202) answer.resume().on('end', () => resolve(202))
      else text(answer).then(said => resolve(`${answer.statusCode} ${JSON.stringify(answer.headers)} ${said}`))
    })
    call.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)).end(body)
  })
}

test.skipIf(!existsSync(CADDY))(
  'no call fails behind the balancer of compose.yaml while its nodes are restarted (skipped without Caddy)',
  async () => {
    const database = await createDatabase('postgres', inject('postgresUrl'))
    cleanUps.push(() => database.dispose())
    const ports = [await freePort(), await freePort()]
    const env = { ...database.env, SANDBOX: 'on', DRAIN_SECONDS: '5' }
    const nodes = ports.map(port => new Service({ env: { ...env, PORT: String(port) } }))
    for (const node of nodes) cleanUps.push(() => node.dispose())
    await Promise.all(nodes.map(node => node.start()))
    const url = await startBalancer(ports)
    await until('the balancer', () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    const { token } = await nodes[0]!.admin.createConnected()

    const answers = new Map<number | string, number>()
    let isOver = false
    const agent = new Agent({ keepAlive: true })
    cleanUps.push(() => agent.destroy())
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!isOver) {
        const answer = await send(url, token, agent)
        answers.set(answer, (answers.get(answer) ?? 0) + 1)
        // The nodes must be healthy: a balancer without a healthy node refuses calls.
        await sleep(PAUSE_MS)
      }
    })
    /** When the node last accepted a call, according to its log. */
    const lastCallTo = (node: Service) => {
      const line = node.output.split('\n').findLast(text => text.includes(ACCEPTED) && text.endsWith('}'))
      return Number(JSON.parse(line ?? '{}').time ?? 0)
    }
    for (const node of [...nodes, ...nodes]) {
      const stoppedAt = performance.now()
      expect(await node.kill('SIGTERM')).toEqual({ code: 0, signal: null })
      expect(performance.now() - stoppedAt).toBeLessThan(onThisMachine(10_500))
      await node.start()
      const startedAt = Date.now()
      await until('the balancer to use it again', () => lastCallTo(node) > startedAt + SETTLED_MS)
    }
    isOver = true
    await Promise.all(callers)
    expect([...answers.keys()]).toEqual([202])
  },
  LONG_TEST_WITHIN_MS,
)
