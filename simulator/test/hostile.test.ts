import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { BaileysClient } from './baileys-client.ts'
import { until } from './wait.ts'
import { jid, link, startSimulator } from './world.ts'

type Stanza = Parameters<BaileysClient['sock']['sendNode']>[0]

const CONTACT = '5511999990001'
const words = [
  'participants',
  'to',
  'enc',
  'list',
  'item',
  'retry',
  'keys',
  'skey',
  'key',
  'query',
  'usync',
  'user',
  'sync',
]
const jids = [jid(CONTACT), '994488000001111@lid', '120363000000000042@g.us', '@s.whatsapp.net', 'x', '']
const text = fc.oneof(
  fc.constantFrom('retry', 'read', 'set', 'get', 'result', 'encrypt', 'usync', 'w:g2', 'md', ...jids),
  fc.string(),
)
const attrs = fc.dictionary(
  fc.constantFrom('id', 'to', 'type', 'jid', 'xmlns', 'class', 'participant', 'category', 'stage', 'count', 'error'),
  text,
)
const inner: fc.Memo<Stanza> = fc.memo(depth =>
  fc.record({
    tag: fc.constantFrom(...words),
    attrs: attrs as fc.Arbitrary<Record<string, string>>,
    content:
      depth > 1
        ? fc.oneof(fc.array(inner(depth - 1), { maxLength: 3 }), fc.uint8Array({ maxLength: 80 }))
        : fc.uint8Array(),
  }),
)
const stanzas = fc.record({
  tag: fc.constantFrom('message', 'receipt', 'ack', 'iq', 'presence', 'ib', 'nonsense'),
  attrs: attrs as fc.Arbitrary<Record<string, string>>,
  content: fc.array(inner(3), { maxLength: 3 }),
})

it('whatever stanzas a client sends, the network keeps serving it and the others', async () => {
  const simulator = await startSimulator({}, [])
  const [hostile, other] = [await link(simulator, 'hostile'), await link(simulator, 'other')]
  await fc.assert(
    fc.asyncProperty(stanzas, async stanza => {
      if (!hostile.isOpen) {
        hostile.reconnect()
        await until(() => hostile.isOpen, 'the hostile client being let in again')
      }
      await hostile.sock.sendNode(stanza).catch(() => undefined)
    }),
    { numRuns: 300 },
  )
  const id = await other.send(jid(CONTACT), 'still here')
  await until(() => other.seen.acks.some(ack => ack.id === id))
  await simulator.writeAs({ from: CONTACT, to: hostile.phone, text: 'still there' })
  await until(async () => {
    if (!hostile.isOpen) {
      hostile.reconnect()
      await until(() => hostile.isOpen, 'the hostile client being let in again')
    }
    return hostile.texts().includes('still there')
  })
  expect(await simulator.listAccounts()).toHaveLength(2)
})
