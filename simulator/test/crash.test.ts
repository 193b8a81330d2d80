import { createSimulatorWorker, type SimulatorWorker } from '@pombal/simulator/worker'
import { beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import type { BaileysClient } from './baileys-client.ts'
import { MemoryStorage } from './memory-storage.ts'
import { until } from './wait.ts'
import { jid, link } from './world.ts'

const CONTACT = '5511999990001'
const CRASHES = 5
const PER_LIFE = 6
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

/** Pseudo-random numbers from 0 to 1, determined by the seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Sends under one ID until it is acknowledged, over any number of connections. */
async function sendUntilAcknowledged(client: BaileysClient, id: string): Promise<void> {
  const acknowledged = () => client.seen.acks.some(ack => ack.id === id)
  while (!acknowledged()) {
    if (client.isOpen)
      await client.sock.sendMessage(jid(CONTACT), { text: `text of ${id}` }, { messageId: id }).catch(() => undefined)
    const { closes } = client.seen
    const before = closes.length
    await until(() => acknowledged() || closes.length > before || !client.isOpen, `the end of an attempt at ${id}`)
    if (!acknowledged()) await until(() => client.isOpen, 'a connection')
  }
}

beforeAll(() => {
  // libsignal prints sessions in the clients' thread.
  for (const method of ['info', 'warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined)
})

it(`acknowledged messages survive a network killed at any moment (SEED=${SEED})`, async () => {
  const random = createRandom(SEED)
  const storage = new MemoryStorage()
  const options = { storage, claimedPreKeys: 500, timings: { deliveredAfterMs: 20, readAfterMs: 40 } }
  let simulator: SimulatorWorker = await createSimulatorWorker(options)
  onTestFinished(() => simulator.terminate())
  const port = Number(new URL(simulator.url).port)
  const client = await link(simulator, 'a')
  let living = true
  const keepConnected = (async () => {
    const { closes } = client.seen
    while (living) {
      const before = closes.length
      await until(() => !living || closes.length > before, 'a close, or the end of the test')
      if (living) client.reconnect()
    }
  })()

  const ids: string[] = []
  const promised: string[] = []
  const sending: Promise<void>[] = []
  for (let life = 0; life <= CRASHES; life++) {
    for (let n = 0; n < PER_LIFE; n++) {
      const id = `3EB0${life.toString().padStart(8, '0')}${n.toString().padStart(8, '0')}`
      ids.push(id)
      sending.push(sendUntilAcknowledged(client, id))
      const text = `contact ${life} ${n}`
      simulator.writeAs({ from: CONTACT, to: client.phone, text }).then(
        ({ id }) => promised.push(id),
        () => undefined,
      )
    }
    if (life === CRASHES) break
    await new Promise(resolve => setTimeout(resolve, random() * 60))
    await simulator.terminate()
    simulator = await createSimulatorWorker({ ...options, port })
    await simulator.openAccount('a')
  }
  await Promise.all(sending)
  await until(() => ids.every(id => client.seen.read.has(id)))
  // A message that Baileys has decrypted but could not confirm before the cut cannot be decrypted again when it is
  // redelivered. Therefore this counts messages on the wire, whether or not the client could decrypt them.
  await until(() => promised.every(id => client.seen.arrived.has(id)))
  living = false
  await keepConnected
  const received = await simulator.inbox(CONTACT)
  expect(received.map(({ id }) => id).sort()).toEqual([...ids].sort())
  expect(received.every(({ id, text }) => text === `text of ${id}`)).toBe(true)
  expect(new Set(client.texts()).size).toBe(client.texts().length)
  await simulator.close()
})
