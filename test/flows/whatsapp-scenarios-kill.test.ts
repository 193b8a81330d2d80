import { setTimeout as sleep } from 'node:timers/promises'
import { createSimulator, type Simulator } from '@pombal/simulator'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { InstanceClient } from '../api-client.ts'
import { eventOf, Receiver } from '../receiver.ts'
import { newSeed, Random } from '../rig/random.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

/** More of them: `FRAME_KILLS=200 npx vitest run test/flows/whatsapp-scenarios-kill.test.ts`. */
const KILLS = Number(process.env['FRAME_KILLS'] ?? 20)
const SEED = Number(process.env['CRASH_SEED'] ?? newSeed())
/** A send to somebody new and an incoming message are some twenty stanzas; then nothing more is held. */
const MOST_STANZAS = 22
const NEXT_STANZA_WITHIN_MS = 150
const KNOWN = '5511987654321'
const PER_KILL_MS = 15_000

const random = new Random(SEED)
let network: Simulator
let service: Service
let receiver: Receiver
let instance: InstanceClient
let phone: string

beforeAll(async () => {
  console.log(`kills between stanzas: CRASH_SEED=${SEED}`)
  network = await createSimulator({ claimedPreKeys: 500, timings: { deliveredAfterMs: 20, readAfterMs: 40 } })
  receiver = await new Receiver().listen()
  service = await new Service({ env: { WHATSAPP_URL: network.url, RATE_LIMIT_PER_MINUTE: '100000' } }).start()
  const { id, token } = await service.admin.createInstance('whatsapp')
  await service.admin.connect(id)
  const qr = await until('a QR code', async () => (await service.admin.connection(id)).qr)
  phone = (await network.scanQr(qr)).phone
  await service.admin.untilState(id, 'connected')
  instance = service.instance(id, token)
  await instance.setWebhook(receiver.url)
})

afterAll(async () => {
  await service?.dispose()
  await network?.close()
  await receiver?.close()
})

test(
  'kill -9 between any two stanzas: sent once, byte for byte; told once; both ways work at once again',
  async () => {
    for (let kill = 1; kill <= KILLS; kill++) {
      const contact = random.next() < 0.5 ? KNOWN : `55119${String(random.integer(0, 99_999_999)).padStart(8, '0')}`
      const stanzas = random.integer(0, MOST_STANZAS)
      const [out, text] = [`out ${kill} ✓`, `in ${kill} ✓`]
      await order({ kind: 'rule', rule: { when: { account: phone }, do: 'hold' } })
      const sending = await instance.send(contact, out)
      const written = await network.writeAs({ from: contact, to: phone, text })
      for (let n = 0; n < stanzas && (await hasHeld()); n++) await order({ kind: 'release', count: 1 })
      await service.kill('SIGKILL')
      await order({ kind: 'clear' })
      await service.start()
      const where = `kill ${kill}, after ${stanzas} stanzas, CRASH_SEED=${SEED}`
      await until(`the text to be read (${where})`, () => isRead(sending.id))
      await until(`the message to be told (${where})`, () => timesTold(written.id) > 0)
      await exchange(contact, kill, where)
      const copies = (await network.inbox(contact)).filter(message => message.text === out)
      expect(copies, where).toMatchObject([{ from: phone, text: out }])
      expect(timesTold(written.id), where).toBe(1)
    }
  },
  KILLS * PER_KILL_MS,
)

/** The next message each way arrives, with one request to send it again at most. */
async function exchange(contact: string, kill: number, where: string): Promise<void> {
  for (const direction of ['in', 'out'] as const) {
    const when = { stanza: 'receipt', direction, attrs: { type: 'retry' }, account: phone } as const
    await order({ kind: 'rule', rule: { when, do: { delayMs: 0 } } })
  }
  const next = await instance.send(contact, `next ${kill}`)
  const answer = await network.writeAs({ from: contact, to: phone, text: `answer ${kill}` })
  await until(`the next text to be read (${where})`, () => isRead(next.id))
  await until(`the answer to be told (${where})`, () => timesTold(answer.id) > 0)
  for (const { rule, applied } of (await network.scenario()).rules) {
    expect(applied, `requests to send again, ${rule.when.direction}, ${where}`).toBeLessThanOrEqual(1)
  }
  await order({ kind: 'clear' })
}

function order(...[one]: Parameters<Simulator['misbehave']>) {
  return network.misbehave(one)
}

async function hasHeld(): Promise<boolean> {
  const until = performance.now() + NEXT_STANZA_WITHIN_MS
  while ((await network.scenario()).held.length === 0) {
    if (performance.now() > until) return false
    await sleep(2)
  }
  return true
}

async function isRead(id: string): Promise<boolean> {
  return (await instance.message(id)).status === 'read'
}

/** How many events there were for this incoming message; each may have been posted more than once. */
function timesTold(id: string): number {
  const requests = receiver.requests.filter(request => eventOf(request).data.id === id)
  return new Set(requests.map(({ headers }) => headers['webhook-id'])).size
}
