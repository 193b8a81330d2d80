import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { getHttpStream } from 'baileys'
import { expect, onTestFinished, test } from 'vitest'
import { createProxies } from '../../../../src/outbound/proxy/proxies.ts'
import { type SocketParts, socketOptions } from '../../../../src/whatsapp/baileys/socket-options.ts'
import { createCertificate } from '../../../certificate.ts'
import { LocalProxy } from '../../../proxies/local-proxy.ts'

const LOOPBACK = { loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] }

test.each(['http', 'socks5'] as const)('every fetch of the library goes through the proxy: %s', async kind => {
  const server = createServer(createCertificate(), (_, response) => response.end('history'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  // Only the proxy knows where this name leads, so a request past it would fail.
  const routes = { 'mmg.whatsapp.invalid:443': `127.0.0.1:${port}` }
  const local = await LocalProxy.listen({ kind, routes })
  onTestFinished(() => local.close())
  const proxy = createProxies(LOOPBACK)(local.url(), 'inst_1')
  const network = { kind: 'simulated', url: 'wss://127.0.0.1:1/' } as const
  const { options } = socketOptions({ network, proxy } as SocketParts)
  const stream = await getHttpStream('https://mmg.whatsapp.invalid/v/history', options)
  expect(String(await buffer(stream))).toBe('history')
  expect(local.asked).toEqual(['mmg.whatsapp.invalid:443'])
  const strict = socketOptions({ network: { kind: 'whatsapp' }, proxy } as SocketParts).options
  await expect(getHttpStream('https://mmg.whatsapp.invalid/v/history', strict)).rejects.toThrow('fetch failed')
})
