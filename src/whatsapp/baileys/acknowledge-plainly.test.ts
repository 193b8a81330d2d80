import { EventEmitter } from 'node:events'
import type { BinaryNode, WASocket } from 'baileys'
import type { Logger } from 'pino'
import { expect, test } from 'vitest'
import { acknowledgePlainly } from './acknowledge-plainly.ts'
import type { LibraryCalls } from './library-scope.ts'

const FROM = '5511987654321@s.whatsapp.net'

test('messages without encryption are acknowledged without a receipt, and logged once', () => {
  const ws = new EventEmitter()
  const handled: unknown[] = []
  const sent: BinaryNode[] = []
  const logged: unknown[] = []
  ws.on('CB:message', ({ attrs }: BinaryNode) => void handled.push(attrs['id']))
  const authState = { creds: { me: { id: '5511900000001:7@s.whatsapp.net' } } }
  const socket = { ws, authState, sendNode: async (node: BinaryNode) => void sent.push(node) }
  const calls = { inBackground: (_: string, work: () => Promise<unknown>) => void work() }
  const logger = { warn: (line: unknown) => void logged.push(line) }
  acknowledgePlainly(socket as unknown as WASocket, calls as unknown as LibraryCalls, logger as unknown as Logger)
  const arrive = (id: string, tag: string) =>
    ws.emit('CB:message', { tag: 'message', attrs: { id, from: FROM }, content: [{ tag, attrs: {}, content: 'x' }] })
  arrive('A', 'plaintext')
  arrive('B', 'enc')
  arrive('C', 'plaintext')
  expect(sent).toMatchObject(['A', 'C'].map(id => ({ tag: 'ack', attrs: { id, to: FROM, class: 'message' } })))
  for (const { attrs } of sent) expect(attrs).not.toHaveProperty('error')
  expect(handled).toEqual(['B'])
  expect(logged).toEqual(['message.unencrypted_ignored'])
})
