import type { QueuedMessage } from '../src/store/messages/messages.ts'
import { SendQueue } from '../src/whatsapp/sending/queue/send-queue.ts'

export const PAGE = 16

/** A send queue that reads small pages. */
export const createSendQueue = () => new SendQueue(PAGE)

/** A queued message to `to`. */
export const row = (seq: number, to: string): QueuedMessage => ({
  seq,
  id: `msg_${seq}`,
  instanceId: 'inst_test',
  to,
  text: '',
  whatsappId: `3EB0${seq}`,
  createdAt: 0,
  foundAddress: null,
  prepared: null,
})

/** Reads until the send queue needs no more. */
export async function read(sendQueue: SendQueue, queue: readonly QueuedMessage[]): Promise<void> {
  while (sendQueue.wantsMore) {
    await sendQueue.read(
      async (afterSeq, limit) => queue.filter(({ seq }) => seq > afterSeq).slice(0, limit),
      () => true,
    )
  }
}

/** Starts to read a page. @returns the number that the page starts after, and a function that answers with these rows */
export function beginPage(sendQueue: SendQueue) {
  let after = Number.NaN
  const { promise, resolve } = Promise.withResolvers<readonly QueuedMessage[]>()
  const done = sendQueue.read(
    afterSeq => {
      after = afterSeq
      return promise
    },
    () => false,
  )
  return {
    after,
    answer: async (rows: readonly QueuedMessage[]) => {
      resolve(rows)
      await done
    },
  }
}

/** The chats that have messages in memory. */
export const loaded = (sendQueue: SendQueue) => [...sendQueue.chats()].filter(({ messages }) => messages.length > 0)
