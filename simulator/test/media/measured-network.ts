/**
 * A network in a process of its own, whose memory can be measured. Its parent sends calls over IPC. The argument is the
 * folder for media files.
 */
import { createSimulator, type Simulator } from '@pombal/simulator'

export type MeasuredCall = { [Name in keyof Calls]: { name: Name; args: Parameters<Calls[Name]> } }[keyof Calls]

type Calls = Pick<Simulator, 'scanQr' | 'writeAs' | 'inbox'> & { peakBytes(): Promise<number> }

const simulator = await createSimulator({ claimedPreKeys: 500, mediaFolder: process.argv[2]! })

const calls: Calls = {
  scanQr: (...args) => simulator.scanQr(...args),
  writeAs: message => simulator.writeAs(message),
  inbox: number => simulator.inbox(number),
  /** The largest resident set since the start. */
  peakBytes: async () => process.resourceUsage().maxRSS * 1024,
}

process.on('message', async ({ name, args }: MeasuredCall) => {
  const call = calls[name] as (...given: unknown[]) => Promise<unknown>
  process.send!({ result: await call(...args) })
})
process.on('disconnect', () => void simulator.close())
process.send!({ result: { url: simulator.url, media: simulator.media } })
