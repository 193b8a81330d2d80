import { expect, test } from 'vitest'
import { type SocketParts, socketOptions } from './socket-options.ts'

const parts = (more: Partial<SocketParts>) => ({ network: { kind: 'whatsapp' }, ...more }) as SocketParts

test('WhatsApp Web’s version is the given one, else the one that ships with the library', () => {
  expect(socketOptions(parts({ version: [2, 3000, 7] })).version).toEqual([2, 3000, 7])
  expect(socketOptions(parts({}))).not.toHaveProperty('version')
})

test('a server is trusted without a certificate on loopback alone', () => {
  expect(socketOptions(parts({}))).not.toHaveProperty('agent')
  expect(socketOptions(parts({ network: { kind: 'simulated', url: 'wss://127.0.0.1:1/' } }))).toHaveProperty('agent')
  const elsewhere = parts({ network: { kind: 'simulated', url: 'wss://web.whatsapp.example/' } })
  expect(() => socketOptions(elsewhere)).toThrow('loopback')
})
