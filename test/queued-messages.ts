import { QUEUED_PAGE_BYTES, type QueuedMessage } from '../src/store/messages/messages.ts'
import { type QueuedRows, SendQueue } from '../src/whatsapp/sending/queue/send-queue.ts'

export const PAGE = 16

/** A send queue that reads small pages. */
export const createSendQueue = () => new SendQueue({ pageRows: PAGE })

/** A queued message to `to`. */
export const row = (seq: number, to: string, bytes = 0): QueuedMessage => ({
  seq,
  id: `msg_${seq}`,
  instanceId: 'inst_test',
  to,
  text: '',
  whatsappId: `3EB0${seq}`,
  createdAt: 0,
  foundAddress: null,
  prepared: null,
  bytes,
})

/** The store with just these rows. */
export const queuedRows = (queue: readonly QueuedMessage[]): QueuedRows => ({
  list: async (afterSeq, limit) => {
    const rows = queue.filter(({ seq }) => seq > afterSeq).slice(0, limit)
    let bytes = 0
    return rows.filter(row => {
      const fits = bytes < QUEUED_PAGE_BYTES
      bytes += row.bytes
      return fits
    })
  },
  listNumbers: async (afterSeq, toSeq, limit) =>
    queue
      .map(({ seq }) => seq)
      .filter(seq => seq > afterSeq && seq <= toSeq)
      .slice(0, limit),
})

/** Reads until the send queue needs no more. */
export async function read(sendQueue: SendQueue, queue: readonly QueuedMessage[]): Promise<void> {
  while (sendQueue.wantsMore) await sendQueue.read(queuedRows(queue), () => true)
}

/**
 * Starts to read a page.
 * @returns the number that the page starts after, and a function that answers with these rows. Then the store has the rows `later`.
 */
export function beginPage(sendQueue: SendQueue) {
  let after = Number.NaN
  const { promise, resolve } = Promise.withResolvers<readonly QueuedMessage[]>()
  const list: QueuedRows['list'] = (afterSeq, limit) => {
    if (!Number.isNaN(after)) return queuedRows(queue).list(afterSeq, limit)
    after = afterSeq
    return promise
  }
  const listNumbers: QueuedRows['listNumbers'] = (...range) => queuedRows(queue).listNumbers(...range)
  let queue: readonly QueuedMessage[] = []
  const done = sendQueue.read({ list, listNumbers }, () => false)
  return {
    after,
    answer: async (rows: readonly QueuedMessage[], later = rows) => {
      queue = later
      resolve(rows)
      await done
    },
  }
}

/** The chats that have messages in memory. */
export const loaded = (sendQueue: SendQueue) => [...sendQueue.chats()].filter(({ messages }) => messages.length > 0)
