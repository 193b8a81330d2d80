/** The cost of posting webhooks without storing anything: a loop that signs and posts, with Pombal's concurrency. */
import { createHmac } from 'node:crypto'
import { Agent } from 'undici'
import { serve } from '../harness/remote.ts'

export interface Posting {
  url: string
  secret: string
  bodies: string[]
  concurrency: number
}

/** Posts every body once; rejects if one is not answered with 200. */
async function post({ url, secret, bodies, concurrency }: Posting): Promise<void> {
  const agent = new Agent({ connections: concurrency, pipelining: 1 })
  const { origin, pathname } = new URL(url)
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  let next = 0

  async function loop(): Promise<void> {
    for (let index = next++; index < bodies.length; index = next++) {
      const body = Buffer.from(bodies[index]!)
      const id = `evt_${index}`
      const timestamp = Math.floor(Date.now() / 1000).toString()
      const answer = await agent.request({
        origin,
        path: pathname,
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          'User-Agent': 'bench',
          'X-Service-Signature': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
          'X-Service-Event': 'message.received',
          'X-Service-Attempt': '1',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`,
        },
        body,
      })
      await answer.body.dump()
      if (answer.statusCode !== 200) throw new Error(`The receiver answered ${answer.statusCode}.`)
    }
  }

  await Promise.all(Array.from({ length: concurrency }, loop))
  await agent.close()
}

const methods = { post }
export type BarePoster = typeof methods
serve(methods)
