import { describe, expect, test } from 'vitest'
import { newMessageId } from '../../../../src/domain/ids.ts'
import type { ChatEntry } from '../../../../src/store/conversations/conversations.ts'
import type { Page, PageRequest } from '../../../../src/store/engine/page.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { accept, createConnected, incoming, PREPARED, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const ANA = '5511988880000'
const PAGE_BYTES = 1_048_576
const START = 1_790_000_000_000
/** In bytes of UTF-8: far below, a little below and above what a page may have. */
const LENGTHS = [10, 400_000, 400_000, 20, 700_000, 1_200_000, 3_000_000, 30, 350_000, 350_000, 350_000, 40]

export function largeTextsContract(createHarness: CreateHarness): void {
  describe('lists of messages with long texts', () => {
    const context = withStore(createHarness)
    let at = START

    async function receive(store: Store, lease: Lease, text: string, from = ANA): Promise<string> {
      at += 1_000
      expect(await store.events.storeIncoming(lease, incoming({ from, text }), at)).toBe('recorded')
      const { data } = await store.events.list(lease.instanceId, { limit: 1 })
      return data[0]!.messageId!
    }

    async function send(store: Store, lease: Lease, text: string): Promise<string> {
      at += 1_000
      const { id } = await accept(store, lease.instanceId, { id: newMessageId(at), to: ANA, text })
      await store.messages.recordPrepared(lease, id, { ...PREPARED, address: `${ANA}@s.whatsapp.net` })
      return id
    }

    /** Reads all pages. Another message arrives before each page after the first. */
    async function readAll<T>(
      lease: Lease,
      list: (page: PageRequest) => Promise<Page<T>>,
      entryOf: (row: T) => { id: string; text: string },
    ): Promise<{ ids: string[]; pages: number }> {
      const ids: string[] = []
      let pages = 0
      let cursor: string | undefined
      do {
        const { data, nextCursor } = await list({ limit: 200, cursor })
        const entries = data.map(entryOf)
        const bytes = entries.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
        expect(entries.length === 1 || bytes <= PAGE_BYTES).toBe(true)
        expect(entries.length).toBeGreaterThan(0)
        ids.push(...entries.map(({ id }) => id))
        pages += 1
        cursor = nextCursor ?? undefined
        if (cursor !== undefined) await receive(context.store, lease, 'x'.repeat(900_000))
      } while (cursor !== undefined)
      return { ids, pages }
    }

    test('end a page at about 1 MiB of text; the next one continues, and nothing is missing or shown twice', async () => {
      const { store } = context
      const { conversations } = store
      const fill = async () => {
        const lease = await createConnected(store)
        const ids: string[] = []
        for (const [index, length] of LENGTHS.entries()) {
          // Two bytes for each letter.
          ids.unshift(await receive(store, lease, `é${index}`.padEnd(length / 2, 'é')))
          if (index % 3 === 0) ids.unshift(await send(store, lease, `é${index}`.padEnd(30_000, 'é')))
        }
        return { lease, ids, instanceId: lease.instanceId }
      }
      const filters = [{}, { chat: ANA }, { search: 'é' }, { chat: ANA, search: 'é' }, { direction: 'in' as const }]
      for (const filter of filters) {
        const { lease, ids, instanceId } = await fill()
        const isIn = new Set(
          (await conversations.listLines(instanceId, { limit: 200 }, { status: 'queued' })).data.map(idOf),
        )
        const expected = 'direction' in filter ? ids.filter(id => !isIn.has(id)) : ids
        const read = await readAll(lease, page => conversations.listLines(instanceId, page, filter), entryOf)
        expect(read.ids).toEqual(expected)
        expect(read.pages).toBeGreaterThan(4)
      }
      const { lease, ids, instanceId } = await fill()
      expect((await readAll(lease, page => conversations.listEntries(instanceId, page, ANA), entryOf)).ids).toEqual(ids)
    })

    test('end the conversations of a sandbox at about 1 MiB of received messages', async () => {
      const { store } = context
      const lease = await createConnected(store)
      for (let count = 0; count < 10; count += 1) await receive(store, lease, `${count}`.padEnd(65_536, 'é'))
      const received = await store.events.listReceived(lease.instanceId, 200)
      expect(received.map(({ body }) => JSON.parse(body).data.text[0])).toEqual(['9', '8', '7', '6', '5', '4', '3'])
    })

    test('end a page of the log of sent messages in the same way', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const ids: string[] = []
      for (let count = 0; count < 20; count += 1) ids.unshift(await send(store, lease, 'é'.repeat(60_000)))
      const read = await readAll(
        lease,
        page => store.messages.list(lease.instanceId, page),
        ({ id, text }) => ({ id, text }),
      )
      expect(read).toEqual({ ids, pages: 3 })
    })

    test('count everything else that a message contains', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const contacts = Array.from({ length: 20 }, () => ({ name: 'Bea', vcard: 'v'.repeat(4_096) }))
      for (let count = 0; count < 30; count += 1) {
        at += 1_000
        const message = incoming({ type: 'contact', from: ANA, details: { contacts } })
        expect(await store.events.storeIncoming(lease, message, at)).toBe('recorded')
      }
      const { data } = await store.conversations.listLines(lease.instanceId, { limit: 200 })
      expect(data).toHaveLength(12)
    })

    test('show the first 1,000 units of the last message of each chat', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const texts: Record<string, string> = {
        '5511900000001': 'short',
        '5511900000002': '\\"\n\u0007'.repeat(300_000),
        '5511900000003': `${'x'.repeat(999)}😀 and more`,
        '5511900000004': 'é'.repeat(1_000),
        '5511900000005': '\ud800'.repeat(400_000),
      }
      for (const [from, text] of Object.entries(texts)) await receive(store, lease, text, from)
      const { data, nextCursor } = await store.conversations.listInbox(lease.instanceId, { limit: 10 })
      expect(nextCursor).toBeNull()
      const shown = Object.fromEntries(data.map(({ chat, lastLine }) => [chat, lastLine!.message.text]))
      expect(shown).toEqual({
        '5511900000001': 'short',
        '5511900000002': '\\"\n\u0007'.repeat(250),
        '5511900000003': 'x'.repeat(999),
        '5511900000004': 'é'.repeat(1_000),
        '5511900000005': '\ud800'.repeat(1_000),
      })
    })

    test('end a page of chats whose last messages contain too much; the next one continues', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const contacts = Array.from({ length: 20 }, () => ({ name: 'Bea', vcard: 'v'.repeat(4_096) }))
      const chats: string[] = []
      for (let count = 10; count < 40; count += 1) {
        at += 60_000
        const from = `55119000000${count}`
        await store.events.storeIncoming(lease, incoming({ type: 'contact', from, details: { contacts } }), at)
        chats.unshift(from)
      }
      const read: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.conversations.listInbox(lease.instanceId, { limit: 200, cursor })
        expect(page.data.length).toBeLessThan(13)
        read.push(...page.data.map(({ chat }) => chat))
        cursor = page.nextCursor ?? undefined
      } while (cursor !== undefined)
      expect(read).toEqual(chats)
    })

    test('export a contact completely', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const ids: string[] = []
      for (const length of LENGTHS) ids.unshift(await receive(store, lease, 'x'.repeat(length)))
      const { messages } = await store.retention.openContact(lease.instanceId, ANA, at + 1_000)
      const lengths: (number | undefined)[] = []
      for await (const { entry } of messages())
        lengths.push(entry.direction === 'command' ? undefined : entry.message.text?.length)
      expect(lengths).toEqual(LENGTHS.toReversed())
    })
  })
}

function entryOf(entry: ChatEntry): { id: string; text: string } {
  if (entry.direction === 'command') throw new Error('No commands were given.')
  return { id: idOf(entry), text: entry.message.text ?? '' }
}

function idOf(entry: ChatEntry): string {
  if (entry.direction === 'command') return entry.command.id
  return entry.direction === 'out' ? entry.message.id : entry.message.messageId
}
