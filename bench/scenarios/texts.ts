/**
 * Texts of one instance to known contacts, posted over HTTP as fast as they are accepted. The time runs from the first post
 * until WhatsApp's acknowledgement of the last text is recorded. Delivery and read receipts that arrive meanwhile are
 * recorded too, each with its event.
 *
 * The reference is bare Baileys with its keys in memory. It sends the same texts to the same number of contacts, one at a
 * time to each, until the last acknowledgement. Both use the same simulated WhatsApp in its own process. Both figures
 * include its work, which decrypts every copy.
 *
 * Not measured: first messages to a contact (look-up and new session), groups, webhooks.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminClient } from '../../test/api-client.ts'
import { alternate, figureOf } from '../harness/figure.ts'
import { linkInstances, startNetwork } from '../harness/network.ts'
import { startProcess } from '../harness/remote.ts'
import type { Scenario } from '../harness/scenario.ts'
import { startService } from '../harness/service.ts'
import { TEXT, textRequest } from '../harness/text.ts'
import type { BareBaileys } from '../processes/bare-baileys.ts'
import type { LoadProcess } from '../processes/load.ts'

const CONTACTS = Array.from({ length: 16 }, (_, index) => `55119876600${10 + index}`)
const FLOOR = { kind: 'at least', ratio: 0.6 } as const
const SENT_WITHIN_MS = 120_000
const POLL_EVERY_MS = 200
const NEWEST = 200
/** The last read receipts are due 600 ms after the acknowledgement, and belong to the round that caused them. */
const RECEIPTS_MS = 1_500

export const texts: Scenario = {
  name: 'texts',
  stores: ['sqlite', 'postgres'],

  async measure(bench, cleanUp) {
    const network = await startNetwork(cleanUp)
    const service = cleanUp.use(await startService(await bench.createDatabase(), { WHATSAPP_URL: network.url }))
    const [instance] = await linkInstances(service, network, 1)
    const load = cleanUp.use(await startProcess<LoadProcess>('load.ts'))
    const bare = cleanUp.use(await startProcess<BareBaileys>('bare-baileys.ts'))
    await network.scanQr(await bare.call('link', network.url))
    await bare.call('linked')

    async function sendBare(count: number): Promise<number> {
      const seconds = await bare.call('send', { contacts: CONTACTS, text: TEXT, count })
      await sleep(RECEIPTS_MS)
      return count / seconds
    }

    const { id, token } = instance!
    const requests = CONTACTS.map(to => textRequest(token, to))
    async function sendThroughPombal(count: number): Promise<number> {
      const startedAt = Date.now()
      await load.call('post', { url: service.url, requests, count, expectedStatus: 202 })
      const seconds = ((await lastSentAt(service.admin, id)) - startedAt) / 1000
      await sleep(RECEIPTS_MS)
      return count / seconds
    }

    bench.say(`first messages to ${CONTACTS.length} contacts`)
    await sendBare(CONTACTS.length * 2)
    await sendThroughPombal(CONTACTS.length * 2)
    const count = bench.quick ? 500 : 2_000
    const rounds = await alternate(
      bench.quick ? 2 : 5,
      () => sendBare(count),
      () => sendThroughPombal(count),
      bench.say,
    )
    return [
      figureOf({
        name: 'texts through one instance',
        store: bench.store,
        unit: 'per second',
        against: 'bare Baileys',
        ...rounds,
        floor: FLOOR,
      }),
    ]
  },
}

/**
 * When the last message was sent, once the queue is empty. It is one of the newest, because each contact's messages are
 * sent in order.
 */
async function lastSentAt(admin: AdminClient, instanceId: string): Promise<number> {
  const deadline = performance.now() + SENT_WITHIN_MS
  // Polled rarely, so that it does not affect the measurement.
  while ((await admin.listMessages(instanceId, '?state=queued&limit=1')).length > 0) {
    if (performance.now() > deadline) throw new Error(`Messages were still queued after ${SENT_WITHIN_MS} ms.`)
    await sleep(POLL_EVERY_MS)
  }
  const newest = await admin.listMessages(instanceId, `?limit=${NEWEST}`)
  return Math.max(...newest.map(({ sentAt }) => Date.parse(sentAt!)))
}
