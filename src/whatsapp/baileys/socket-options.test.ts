import { DEFAULT_CONNECTION_CONFIG } from 'baileys'
import { expect, test } from 'vitest'
import { WHATSAPP_SERVER } from '../connection/connection-settings.ts'
import { type SocketParts, socketOptions } from './socket-options.ts'

const parts = (more: Partial<SocketParts>) => ({ network: { kind: 'whatsapp' }, ...more }) as SocketParts

test('the version of WhatsApp Web defaults to the one that ships with the library', () => {
  expect(socketOptions(parts({ version: [2, 3000, 7] })).version).toEqual([2, 3000, 7])
  expect(socketOptions(parts({}))).not.toHaveProperty('version')
})

test('the announced device is a browser on a real system', () => {
  expect(socketOptions(parts({})).browser?.slice(0, 2)).toEqual(['Mac OS', 'Chrome'])
  expect(socketOptions(parts({ device: 'firefox-windows' })).browser?.slice(0, 2)).toEqual(['Windows', 'Firefox'])
})

test('a server without a valid certificate is trusted only on loopback', () => {
  expect(socketOptions(parts({}))).not.toHaveProperty('agent')
  expect(socketOptions(parts({ network: { kind: 'simulated', url: 'wss://127.0.0.1:1/' } }))).toHaveProperty('agent')
  const elsewhere = parts({ network: { kind: 'simulated', url: 'wss://web.whatsapp.example/' } })
  expect(() => socketOptions(elsewhere)).toThrow('loopback')
})

test('a proxy is tested with the server that the library connects to', () => {
  expect(DEFAULT_CONNECTION_CONFIG.waWebSocketUrl).toBe(WHATSAPP_SERVER)
})

test('a history that WhatsApp does not deliver is given up', () => {
  expect(socketOptions(parts({})).options).toHaveProperty('dispatcher')
})
