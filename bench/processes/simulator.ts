/** The simulated WhatsApp network in its own process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createSimulator, type Simulator } from '@pombal/simulator'
import { until } from '../../test/until.ts'
import { observed } from '../harness/observed-network.ts'
import { runPaced } from '../harness/paced.ts'
import { serve } from '../harness/remote.ts'
import { TEXT } from '../harness/text.ts'

/**
 * The number of one-time keys reported to each client: so high that no client uploads more, and linking hundreds of
 * clients takes only seconds.
 */
const CLAIMED_PRE_KEYS = 500

const POLL_EVERY_MS = 10

let simulator: Simulator

async function listen(): Promise<string> {
  simulator = await createSimulator({ claimedPreKeys: CLAIMED_PRE_KEYS })
  return simulator.url
}

/** @returns the number of the account that was linked */
async function scanQr(qr: string): Promise<string> {
  return (await simulator.scanQr(qr)).phone
}

async function countOnline(): Promise<number> {
  return (await simulator.listAccounts()).filter(({ online }) => online).length
}

/** Ends every client's socket at once. @returns the time until each client was back, in ms */
async function cutAll(watchMs: number): Promise<number[]> {
  const accounts = (await simulator.listAccounts()).filter(({ online }) => online)
  const waiting = new Set(accounts.map(({ phone }) => phone))
  for (const account of waiting) await simulator.misbehave({ kind: 'cut', account })
  const cutAt = performance.now()
  const backAfterMs: number[] = []
  while (waiting.size > 0 && performance.now() - cutAt < watchMs) {
    await sleep(POLL_EVERY_MS)
    for (const { phone, online } of await simulator.listAccounts()) {
      if (online && waiting.delete(phone)) backAfterMs.push(performance.now() - cutAt)
    }
  }
  return backAfterMs
}

const countAcknowledged = () => observed.acknowledged

export interface Chat {
  /** The number of a contact. */
  from: string
  /** The number of an account. */
  to: string
}

/** Contacts write in each chat in turn, at fixed times. @returns when each message left the network, by WhatsApp's ID */
async function write(chats: Chat[], perSecond: number, count: number): Promise<[string, number][]> {
  observeTimes()
  const writing: Promise<unknown>[] = []
  await runPaced(perSecond, count, index => {
    writing.push(simulator.writeAs({ ...chats[index % chats.length]!, text: `${TEXT} ${index}` }))
  })
  await Promise.all(writing)
  observed.timed = false
  return [...observed.leftAt]
}

/** From now on, records when messages leave and arrive. */
function observeTimes(): void {
  observed.timed = true
  observed.leftAt.clear()
  observed.inInboxAt.clear()
}

/** Waits for `count` messages since `observeTimes`. @returns when each reached a phone's inbox, by its text */
async function inboxTimes(count: number, withinMs: number): Promise<[string, number][]> {
  await until(`${count} texts in the inboxes`, () => observed.inInboxAt.size >= count, withinMs)
  observed.timed = false
  return [...observed.inInboxAt]
}

/** A contact sends a file with random content. */
async function writeFile({ from, to }: Chat, bytes: number): Promise<void> {
  await simulator.writeAs({ from, to, media: { type: 'document', mimetype: 'application/octet-stream', size: bytes } })
}

const methods = { listen, scanQr, countOnline, countAcknowledged, cutAll, write, writeFile, observeTimes, inboxTimes }
export type SimulatorProcess = typeof methods
serve(methods)
