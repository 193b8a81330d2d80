/** The simulated WhatsApp network, alone in its process. */
import { createSimulator, type Simulator } from '@pombal/simulator'
import { serve } from '../harness/remote.ts'

/** Enough that no client makes one-time keys: linking 200 of them is then a matter of seconds. */
const CLAIMED_PRE_KEYS = 500

let simulator: Simulator

async function listen(): Promise<string> {
  simulator = await createSimulator({ claimedPreKeys: CLAIMED_PRE_KEYS })
  return simulator.url
}

async function scanQr(qr: string): Promise<void> {
  await simulator.scanQr(qr)
}

const methods = { listen, scanQr }
export type SimulatorProcess = typeof methods
serve(methods)
