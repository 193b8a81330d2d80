import { createHmac } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import type { Arrival } from './facts.ts'
import type { Random } from './random.ts'

/** An answer takes up to this long, so that a kill finds attempts in flight. */
const ANSWER_WITHIN_MS = 30

/** A receiver that answers everything with 204 and writes down what came, in order. */
export class Recorder {
  readonly arrivals: Arrival[] = []
  readonly #secrets = new Map<string, string>()
  readonly #server = createServer()
  readonly #boot: () => number

  /** @param options.boot which run of the service is on */
  constructor(options: { boot(): number; random: Random; onArrival(): void }) {
    this.#boot = options.boot
    this.#server.on('request', async (request, response) => {
      const instanceId = request.url?.slice(1) ?? ''
      const body = await buffer(request).catch(() => null)
      // Killed while it posted: nothing was told yet.
      if (body === null) return
      this.#record(instanceId, request.headers, body)
      options.onArrival()
      await sleep(options.random.between(0, ANSWER_WITHIN_MS))
      response.writeHead(204).end()
    })
  }

  async listen(): Promise<this> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }

  urlFor(instanceId: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${instanceId}`
  }

  expect(instanceId: string, secret: string): void {
    this.#secrets.set(instanceId, secret)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #record(instanceId: string, headers: IncomingHttpHeaders, body: Buffer): void {
    const { event, data } = JSON.parse(body.toString()) as { event: string; data: { id: string } }
    this.arrivals.push({
      instanceId,
      eventId: String(headers['webhook-id']),
      kind: event,
      subject: data.id,
      body: body.toString(),
      signed: isSigned(this.#secrets.get(instanceId) ?? '', headers, body),
      attemptNumber: Number(headers['x-service-attempt']),
      boot: this.#boot(),
    })
  }
}

/** Both signatures, each over the bytes that came. */
function isSigned(secret: string, headers: IncomingHttpHeaders, body: Buffer): boolean {
  const own = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  if (headers['x-service-signature'] !== own) return false
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}
