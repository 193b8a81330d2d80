/** Bare Baileys with its default options. Credentials and Signal keys are in memory, and nothing is recorded. */
import { link, linked, open, sendDocument, sendText } from '../harness/bare-sockets.ts'
import { serve } from '../harness/remote.ts'

export interface Sending {
  contacts: string[]
  text: string
  count: number
}

/**
 * Sends through all linked accounts, one message at a time to each contact of each; resolves with the seconds to the last
 * acknowledgement.
 */
async function send({ contacts, text, count }: Sending): Promise<number> {
  const startedAt = performance.now()
  let left = count
  const chats = contacts.flatMap(contact => open.map(socket => ({ socket, contact })))
  await Promise.all(
    chats.map(async ({ socket, contact }) => {
      while (left-- > 0) await sendText(socket, contact, text)
    }),
  )
  return (performance.now() - startedAt) / 1000
}

/** Sends a file through the first linked account; resolves with the seconds to the acknowledgement. */
async function sendFile(contact: string, path: string): Promise<number> {
  // The simulated media host has a certificate of its own.
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  const startedAt = performance.now()
  await sendDocument(open[0]!, contact, path)
  return (performance.now() - startedAt) / 1000
}

const methods = { link, linked, send, sendFile, openSockets: () => open.length }
export type BareBaileys = typeof methods
serve(methods)
