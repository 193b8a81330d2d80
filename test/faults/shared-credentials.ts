import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type InstanceClient, instanceClient } from '../api-client.ts'
import { type Network, startNetwork } from '../network.ts'
import { Receiver } from '../receiver.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'
import type { Fault, FaultReport } from './fault.ts'

const TO = '5511987654321'
const TEXTS = 20
const SETTLED_WITHIN_MS = 30_000

/**
 * Starts a copy of the data folder next to the original: two processes with one account's credentials. WhatsApp keeps one of
 * them connected, and the other one must not compete. Messages that both have queued are shown once.
 */
export const sharedCredentials: Fault = {
  name: 'two processes with one account’s credentials',
  store: 'sqlite',
  async run({ say }) {
    await using cleanUp = new AsyncDisposableStack()
    const network = await startNetwork()
    cleanUp.defer(() => network.close())
    const receiver = await new Receiver().listen()
    cleanUp.defer(() => receiver.close())
    const env = { WHATSAPP_URL: network.url, SANDBOX: 'off' }
    const first = await new Service({ env }).start()
    cleanUp.defer(() => first.dispose())
    const { id, token } = await link(first, network)
    const client = first.instance(id, token)
    await client.setWebhook(receiver.url)
    const texts = await queueWhileSilent(client, network)
    await first.kill('SIGKILL')
    const copy = mkdtempSync(join(tmpdir(), 'pombal-copied-'))
    cleanUp.defer(() => rmSync(copy, { recursive: true }))
    cpSync(first.dataDir, copy, { recursive: true })
    network.resume()
    const second = new Service({ env, dataDir: copy })
    cleanUp.defer(() => second.dispose())
    await Promise.all([first.start(), second.start()])
    const startedAt = performance.now()
    const winner = await until('one of them to stop', () => findWinner([first, second], id), SETTLED_WITHIN_MS)
    const recoveredMs = performance.now() - startedAt
    say(`${winner === first ? 'the original' : 'the copy'} stays`)
    const last = `${id} last`
    await instanceClient(() => winner.url!, id, token).send(TO, last)
    await until(
      'the last text',
      async () => (await network.inbox(TO)).some(({ text }) => text === last),
      SETTLED_WITHIN_MS,
    )
    if ((await findWinner([first, second], id)) !== winner)
      throw new Error('The two processes compete for the connection.')
    return count(await network.inbox(TO), [...texts, last], recoveredMs)
  },
}

async function link({ admin }: Service, network: Network) {
  const instance = await admin.createInstance('whatsapp')
  await admin.connect(instance.id)
  await network.scanQr(await until('a QR code', async () => (await admin.connection(instance.id)).qr))
  await admin.untilState(instance.id, 'connected')
  return instance
}

/** Sends texts while WhatsApp answers nothing, so they are accepted and stay queued. */
async function queueWhileSilent(client: InstanceClient, network: Network): Promise<string[]> {
  await client.send(TO, `${client.id} first`)
  await until('a first text', async () => (await network.inbox(TO)).length > 0)
  network.pause()
  const texts = Array.from({ length: TEXTS }, (_, n) => `${client.id} ${n}`)
  for (const text of texts) await client.send(TO, text)
  return [`${client.id} first`, ...texts]
}

/** Null until one is connected and the other one is stopped. */
async function findWinner(services: readonly [Service, Service], id: string): Promise<Service | null> {
  const states = await Promise.all(services.map(async ({ admin }) => (await admin.connection(id)).state))
  const [first, second] = services
  if (states[0] === 'connected' && states[1] === 'stopped') return first
  return states[1] === 'connected' && states[0] === 'stopped' ? second : null
}

function count(shown: readonly { text: string }[], texts: readonly string[], recoveredMs: number): FaultReport {
  const times = texts.map(text => shown.filter(entry => entry.text === text).length)
  const lost = times.filter(number => number === 0).length
  const doubled = times.filter(number => number > 1).length
  const order = shown.map(({ text }) => texts.indexOf(text))
  const outOfOrder = order.filter((place, index) => index > 0 && place < order[index - 1]!).length
  const violations = [
    ...(lost > 0 ? [`${lost} texts are lost.`] : []),
    ...(doubled > 0 ? [`${doubled} texts are shown twice.`] : []),
    ...(outOfOrder > 0 ? [`The phone shows ${shown.map(({ text }) => text).join(', ')}.`] : []),
  ]
  return { accepted: texts.length, lost, doubled, outOfOrder, repeated: 0, recoveredMs, violations }
}
