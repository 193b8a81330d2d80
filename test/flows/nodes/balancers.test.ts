import { existsSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { createDatabase } from '../../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'
import { BALANCERS, type Balancer, freePort } from './balancers.ts'

const CALLERS = 4
const PAUSE_MS = 20
/** A few health checks of a balancer. */
const SETTLED_MS = 4_000
/** In a log line of an accepted call. */
const ACCEPTED = '"route":"/v1/messages/text","status":202'
const cleanUps: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** One call through a balancer. */
function call({ url, ca }: Balancer, path: string, options: RequestOptions, body = ''): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...options.headers,
    }
    request(`${url}${path}`, { family: 4, ca, ...options, headers }, resolve)
      .on('error', reject)
      .end(body)
  })
}

describe.each(Object.entries(BALANCERS))(
  'behind %s as in docs/deploy (skipped where it is not installed)',
  (_, example) => {
    test.skipIf(!existsSync(example.program))(
      'no call fails while two nodes are restarted, and the stream of events is not buffered',
      async () => {
        const database = await createDatabase('postgres', inject('postgresUrl'))
        cleanUps.push(() => database.dispose())
        const ports = [await freePort(), await freePort()]
        const shared = {
          SANDBOX: 'on',
          DRAIN_SECONDS: '5',
          TRUSTED_PROXIES: '127.0.0.1',
        }
        const env = { ...database.env, ...shared }
        const nodes = ports.map(port => new Service({ env: { ...env, PORT: String(port) } }))
        for (const node of nodes) cleanUps.push(() => node.dispose())
        await Promise.all(nodes.map(node => node.start()))
        const balancer = await example.start(ports)
        cleanUps.push(() => balancer.stop())
        const isReady = () => call(balancer, '/readyz', {}).then(answer => answer.resume().statusCode === 200)
        await until('the balancer', () => isReady().catch(() => false))
        const { token } = await nodes[0]!.admin.createConnected()
        const agent = new Agent({ keepAlive: balancer.keepAlive })
        cleanUps.push(() => agent.destroy())
        const headers = { authorization: `Bearer ${token}` }

        /** @returns 202; any other answer with its body, or the error if there was no answer */
        async function send(): Promise<number | string> {
          const body = JSON.stringify({ to: '15005550003', text: 'hello' })
          try {
            const answer = await call(balancer, '/v1/messages/text', { method: 'POST', agent, headers }, body)
            const said = await text(answer)
            return answer.statusCode === 202 ? 202 : `${answer.statusCode} ${said}`
          } catch (error) {
            return String(error)
          }
        }

        const stream = await call(balancer, '/v1/events/stream', { headers })
        cleanUps.push(() => stream.destroy())
        expect(stream.statusCode).toBe(200)
        let streamed = ''
        stream.setEncoding('utf8').on('data', part => {
          streamed += part
        })
        stream.on('error', () => undefined)
        expect(await send()).toBe(202)
        await until('an event', () => streamed.includes('message.sent'))

        const answers = new Map<number | string, number>()
        let isOver = false
        const callers = Array.from({ length: CALLERS }, async () => {
          while (!isOver) {
            const answer = await send()
            answers.set(answer, (answers.get(answer) ?? 0) + 1)
            await sleep(PAUSE_MS)
          }
        })
        /** When the node last accepted a call, according to its log. */
        const lastCallTo = (node: Service) => {
          const line = node.wholeLog.split('\n').findLast(line => line.includes(ACCEPTED) && line.endsWith('}'))
          return Number(JSON.parse(line ?? '{}').time ?? 0)
        }
        for (const [index, node] of nodes.entries()) {
          await balancer.takeOut(index)
          expect(await node.kill('SIGTERM')).toEqual({ code: 0, signal: null })
          await node.start()
          await balancer.putBack(index)
          const startedAt = Date.now()
          await until('the balancer to use it again', () => lastCallTo(node) > startedAt + SETTLED_MS)
        }
        isOver = true
        await Promise.all(callers)
        expect([...answers.keys()]).toEqual([202])
        // For the figures in docs/operations.md.
        process.stdout.write(`${JSON.stringify([...answers])} answers behind ${example.program}\n`)
      },
      LONG_TEST_WITHIN_MS,
    )
  },
)
