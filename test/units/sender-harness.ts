import { pino } from 'pino'
import { afterEach, vi } from 'vitest'
import { EventLoopBudget } from '../../src/kit/event-loop-budget.ts'
import { LocalHints } from '../../src/store/hints.ts'
import type { MessageReference, Messages, QueuedMessage } from '../../src/store/messages/messages.ts'
import type { LookedUpNumber, Numbers } from '../../src/store/numbers/numbers.ts'
import type { Paces } from '../../src/store/pace/paces.ts'
import type { Acknowledgement } from '../../src/whatsapp/baileys/link.ts'
import type { QueuedRows } from '../../src/whatsapp/sending/queue/send-queue.ts'
import type { SendingLink } from '../../src/whatsapp/sending/send.ts'
import { Sender } from '../../src/whatsapp/sending/sender.ts'
import type { Files } from '../../src/whatsapp/sending/uploads.ts'
import { queuedRows } from '../queued-messages.ts'
import { createGroupDirectory } from './group-directory.ts'

export const LEASE = { instanceId: 'inst_test', owner: 'test', epoch: 1 }
export const ADDRESS = '5511987654321@s.whatsapp.net'

interface Row extends QueuedMessage {
  ended?: string
}

/** A sender with rows in memory and a link whose answers the test gives. */
export function stage(settings: { messageTtlMs?: number; ackTimeoutMs?: number; paces?: Paces; files?: Files } = {}) {
  const hints = new LocalHints()
  const rows: Row[] = []
  const expiresAt = Date.now() + 3_600_000
  const numbers = new Map<string, LookedUpNumber>([['5511987654321', { address: ADDRESS, expiresAt }]])
  const contacts = new Set(['5511987654321'])
  const isContact = vi.fn(async (_: string, names: readonly string[]) => names.some(name => contacts.has(name)))
  const findPrepared = (whatsappId: string) => rows.find(row => row.prepared && row.whatsappId === whatsappId)
  const messages = {
    releaseDue: async () => null,
    listQueued: async (_: string, limit: number, afterSeq = 0) =>
      rows
        .filter(row => !row.ended && row.seq > afterSeq)
        .slice(0, limit)
        .map(row => ({ ...row })),
    listQueuedAges: async (_: string, limit: number, afterSeq: number) =>
      rows
        .filter(row => !row.ended && row.seq > afterSeq)
        .slice(0, limit)
        .map(row => ({ ...row, isPrepared: row.prepared !== null })),
    listQueuedNumbers: async (_: string, ...range: Parameters<QueuedRows['listNumbers']>) =>
      queuedRows(rows.filter(row => !row.ended)).listNumbers(...range),
    recordPrepared: vi.fn(async (_: unknown, id: string, prepared: QueuedMessage['prepared']) => {
      const row = rows.find(one => one.id === id)!
      row.prepared ??= prepared
      return row.prepared
    }),
    async recordProgress(_: unknown, whatsappId: string, reached: string) {
      const row = findPrepared(whatsappId)
      if (row) row.ended = reached
      if (row) contacts.add(row.to)
      return row ? 'recorded' : 'unknown_message'
    },
    async recordFailure(_: unknown, message: MessageReference, failure: { code: string; message: string }) {
      const row = message.id ? rows.find(({ id }) => id === message.id) : findPrepared(message.whatsappId)
      if (row) row.ended = `${failure.code}: ${failure.message}`
      return 'recorded'
    },
  }
  const store = {
    hints,
    messages: messages as unknown as Messages,
    paces: settings.paces ?? ({ find: async () => null } as Partial<Paces> as Paces),
    numbers: {
      find: async (_: string, number: string) => numbers.get(number) ?? null,
      record: async (_: unknown, number: string, address: string | null) =>
        void numbers.set(number, { address, expiresAt }),
      isContact,
      listOrders: async () => [],
    } as Partial<Numbers> as Numbers,
  }
  const failed = vi.fn()
  const sender = new Sender({
    lease: LEASE,
    store,
    groups: createGroupDirectory().groups,
    files: settings.files ?? null,
    restriction: { isInForce: false },
    eventLoopBudget: new EventLoopBudget(),
    messageTtlMs: settings.messageTtlMs ?? 86_400_000,
    ackTimeoutMs: settings.ackTimeoutMs ?? 1_000,
    logger: pino({ level: 'silent' }),
    now: Date.now,
    onFailed: failed,
  })
  const written: { address: string; content: string; whatsappId: string }[] = []
  const closing = new AbortController()
  const link = {
    isOpen: true,
    closed: closing.signal,
    self: {},
    write: vi.fn(async (address: string, content: Uint8Array, whatsappId: string, record: () => Promise<void>) => {
      await record()
      written.push({ address, content: Buffer.from(content).toString('hex'), whatsappId })
    }),
    uploadFile: vi.fn(async () => new Uint8Array()),
    markRead: vi.fn(async () => undefined),
    type: vi.fn(),
    lookUp: vi.fn(async (): ReturnType<SendingLink['lookUp']> => ({ kind: 'silent' })),
    queryGroup: vi.fn(async () => {
      throw Object.assign(new Error('item-not-found'), { data: 404 })
    }),
    forgetDevices: vi.fn(async () => undefined),
    shareKeyAgain: vi.fn(),
  } satisfies SendingLink
  const accept = (to = '5511987654321', createdAt = Date.now()) => {
    const seq = rows.length + 1
    const row: Row = {
      seq,
      id: `msg_${seq}`,
      instanceId: LEASE.instanceId,
      to,
      text: `text ${seq}`,
      whatsappId: `3EB0${seq}`,
      createdAt,
      foundAddress: null,
      prepared: null,
      bytes: 0,
    }
    rows.push(row)
    hints.publish('queued', LEASE.instanceId)
    return row
  }
  const answer = (whatsappId: string, more: Partial<Acknowledgement> = {}) =>
    sender.acknowledged({ whatsappId, chat: undefined, error: undefined, devicesHash: undefined, ...more })
  cleanUps.push(() => {
    closing.abort()
    return sender.stop()
  })
  return {
    sender,
    rows,
    messages,
    written,
    link,
    accept,
    answer,
    numbers,
    contacts,
    isContact,
    expiresAt,
    failed,
    close: () => closing.abort(),
  }
}

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})
