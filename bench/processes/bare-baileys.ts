/** Bare Baileys with its default options. Credentials and Signal keys are in memory, and nothing is recorded. */
import { link, linked, open, sendText } from '../harness/bare-sockets.ts'
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

const methods = { link, linked, send, openSockets: () => open.length }
export type BareBaileys = typeof methods
serve(methods)
