import { statSync } from 'node:fs'
import { ServerResponse } from 'node:http'
import { BroadcastChannel } from 'node:worker_threads'

/**
 * For `--import` before the service: the life of a QR code (a minute, then 20 s each; the client counts it, not WhatsApp) ends
 * when the file that `CODES_ENDED` names has grown by a byte. Both clocks advance by the same time, in every thread.
 */
const POLL_EVERY_MS = 20
const { CODES_ENDED: file = '' } = process.env

const after = globalThis.setTimeout
const realNow = Date.now
const realMonotonicNow = performance.now.bind(performance)
let aheadMs = 0
let ended = 0
let waiting: { end: () => void; lifeMs: number } | null = null
const clocks = new BroadcastChannel('clocks')
clocks.onmessage = ({ data }) => {
  aheadMs += data
}
clocks.unref()

// Node writes the real time into the answers.
const writeHead = ServerResponse.prototype.writeHead
ServerResponse.prototype.writeHead = function (...args: Parameters<typeof writeHead>) {
  this.setHeader('date', new Date(Date.now()).toUTCString())
  return writeHead.apply(this, args)
} as typeof writeHead

Date.now = () => realNow() + aheadMs
performance.now = () => realMonotonicNow() + aheadMs
globalThis.setTimeout = Object.assign((work: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) => {
  if (work.name !== 'genPairQR') return after(work, delayMs, ...args)
  waiting = { end: work, lifeMs: delayMs ?? 0 }
  // The timer that Baileys clears. It does nothing.
  return after(() => undefined, 0)
}, after)

setInterval(() => {
  const wanted = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (waiting === null || ended >= wanted) return
  const { end, lifeMs } = waiting
  waiting = null
  ended += 1
  aheadMs += lifeMs
  clocks.postMessage(lifeMs)
  end()
}, POLL_EVERY_MS).unref()
