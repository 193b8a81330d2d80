/** The simulated WhatsApp network in its own process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createSimulator, type Simulator } from '@pombal/simulator'
import { observed } from '../harness/observed-network.ts'
import { serve } from '../harness/remote.ts'

/** Enough that no client creates one-time keys. Linking 200 of them then takes seconds. */
const CLAIMED_PRE_KEYS = 500

const POLL_EVERY_MS = 10

let simulator: Simulator

async function listen(): Promise<string> {
  simulator = await createSimulator({ claimedPreKeys: CLAIMED_PRE_KEYS })
  return simulator.url
}

async function scanQr(qr: string): Promise<void> {
  await simulator.scanQr(qr)
}

async function countOnline(): Promise<number> {
  return (await simulator.listAccounts()).filter(({ online }) => online).length
}

/** Ends every client's socket at once. @returns after how many ms each client was back */
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

const methods = { listen, scanQr, countOnline, countAcknowledged, cutAll }
export type SimulatorProcess = typeof methods
serve(methods)
