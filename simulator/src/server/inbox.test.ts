import { expect, it } from 'vitest'
import { Records } from '../signal/records.ts'
import { Inboxes } from './inbox.ts'

const SENDER = '88800000000001'

function createInboxes() {
  const inboxes = new Inboxes(new Records(null, 'a'), () => false)
  const receive = (n: number, content?: Buffer) =>
    inboxes.receive(`55119${n}`, { id: `ID${n}`, from: SENDER, text: 'x', receivedAt: n }, content)
  return { inboxes, receive }
}

it('the phones of a scope together remember the latest 95,000 messages, whatever the number of phones', () => {
  const { inboxes, receive } = createInboxes()
  for (let n = 0; n <= 100_000; n++) receive(n)
  expect(inboxes.writtenBy(SENDER)).toHaveLength(95_000)
  expect([inboxes.find('ID5000'), inboxes.find('ID5001')?.text]).toEqual([null, 'x'])
})

it('the phones of a scope together remember less than 64 MiB', () => {
  const { inboxes, receive } = createInboxes()
  const content = Buffer.alloc(6 * 2 ** 20)
  for (let n = 0; n < 20; n++) receive(n, content)
  expect(inboxes.writtenBy(SENDER).map(({ message }) => message.id)).toContain('ID19')
  expect(inboxes.writtenBy(SENDER).length).toBeLessThanOrEqual(8)
})
