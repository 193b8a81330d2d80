import { expect, it } from 'vitest'
import { Records } from '../signal/records.ts'
import { node } from './nodes.ts'
import { receiptParty, StanzaQueue } from './stanza-queue.ts'

const message = (id: string) => node('message', { id, from: '1@lid' }, [node('enc', {}, Buffer.from('x'))])
const receipt = (id: string, type?: string) => node('receipt', { id, type, from: '1@lid' })

it('a confirmation finds its own stanza, the oldest one of several, and only if it is due', () => {
  const queue = new StanzaQueue(new Records(null, 's'))
  const [first, second] = [queue.add(message('A'), 10), queue.add(message('A'), 10)]
  queue.add(message('B'), 99)
  const [delivered, read] = [queue.add(receipt('A'), 10), queue.add(receipt('A', 'read'), 10)]
  expect(queue.find('message', 'B', 50)).toBe(null)
  expect(queue.find('message', 'A', 50)).toBe(first)
  queue.settle(first)
  expect(queue.find('message', 'A', 50)).toBe(second)
  expect(queue.find('receipt', 'A', 50, receiptParty(undefined, '1@lid', undefined))).toBe(delivered)
  expect(queue.find('receipt', 'A', 50, receiptParty('read', '1@lid', undefined))).toBe(read)
  expect(queue.find('receipt', 'A', 50, receiptParty('read', '2@lid', undefined))).toBe(null)
  expect(queue.size).toBe(4)
})

it('a restored queue has the same stanzas in the same order and continues its numbering', async () => {
  const stored = new Map<string, Uint8Array>()
  const storage = {
    read: async () => stored,
    write: async (_scope: string, changes: readonly { key: string; value: Uint8Array | null }[]) => {
      for (const { key, value } of changes) {
        if (value) stored.set(key, value)
        else stored.delete(key)
      }
    },
  }
  const records = new Records(storage, 's')
  const queue = new StanzaQueue(records)
  const entries = ['A', 'B', 'C'].map(id => queue.add(message(id), 10, { from: '5', content: Buffer.from('text') }))
  queue.settle(entries[1]!)
  queue.replace(entries[2]!, message('C'))
  records.seal()
  await records.commit()

  const restored = new StanzaQueue(new Records(storage, 's'))
  for (const [key, value] of [...stored].reverse()) restored.restore(Number(key.split('/')[1]), value.toString())
  expect(restored.entries().map(({ stanza }) => stanza)).toEqual([message('A'), message('C')])
  expect(restored.entries()[0]?.original).toEqual({ from: '5', content: Buffer.from('text') })
  expect(restored.add(message('D'), 10).sequence).toBe(4)
})
