import type { QueuedMessage } from '../src/store/messages/messages.ts'
import type { SendQueue } from '../src/whatsapp/sending/queue/send-queue.ts'

export const PAGE = 16

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

/** Reads pages as the queue reader does, until the send queue wants no more. */
export function read(sendQueue: SendQueue, queue: readonly QueuedMessage[], now = 0): void {
  while (sendQueue.wantsMore) {
    sendQueue.rewind()
    let rows: QueuedMessage[]
    do {
      rows = queue.filter(({ seq }) => seq > sendQueue.scannedTo).slice(0, PAGE)
      sendQueue.beginRead()
      sendQueue.endRead(rows, rows.length < PAGE, now)
    } while (rows.length === PAGE && sendQueue.wantsMore)
  }
}
