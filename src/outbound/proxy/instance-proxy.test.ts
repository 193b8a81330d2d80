import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { LocalProxy } from '../../../test/proxies/local-proxy.ts'
import { createAddressGuard } from '../address-guard.ts'
import { InstanceProxy } from './instance-proxy.ts'

const MIB = 1_048_576

/** A proxy that writes `start`, and then `more` without end. @returns its URL, and how much it has written */
async function listen(start: string, more: string): Promise<{ url: string; written: () => number }> {
  const sockets: Socket[] = []
  const bytes = Buffer.from(more.repeat(Math.ceil(65_536 / more.length)))
  const server = createServer(socket => {
    sockets.push(socket)
    const write = () => {
      while (!socket.destroyed && socket.write(bytes)) {
        // Until the buffer is full.
      }
    }
    socket.on('error', () => undefined).on('drain', write)
    socket.once('data', () => {
      socket.write(start)
      write()
    })
    socket.resume()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    written: () => sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0),
  }
}

const ANSWERS = [
  ['bytes that are not HTTP', '', 'A'],
  ['an endless header', 'HTTP/1.1 200 OK\r\nX: ', 'A'],
  ['headers without end', 'HTTP/1.1 200 OK\r\n', 'X: A\r\n'],
  ['an endless reason', 'HTTP/1.1 200 ', 'A'],
  ['empty lines without end', '', '\r\n'],
] as const

test.each(ANSWERS)('a proxy that answers with %s fails at once, and little is read', async (_what, start, more) => {
  const { url, written } = await listen(start, more)
  const guard = createAddressGuard({ loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] })
  const proxy = new InstanceProxy(url, guard, () => Promise.reject(new Error('No name is looked up.')))
  // If the answer were still being read after 15 s, the failure would be a timeout.
  expect(await proxy.probe(new URL('https://example.com'), true)).toBe('PROXY_UNREACHABLE')
  // The rest is in the buffers of the sockets.
  expect(written()).toBeLessThan(16 * MIB)
})

test.each(['socks5', 'http'] as const)('a %s proxy is reached at a literal IPv6 address', async kind => {
  await using proxy = await LocalProxy.listen({ kind }, 0, '::1')
  proxy.refuses = true
  const guard = createAddressGuard({ loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] })
  const agent = new InstanceProxy(proxy.url(undefined, '[::1]'), guard, () =>
    Promise.reject(new Error('No name is looked up.')),
  )
  expect(await agent.probe(new URL('https://example.com'), true)).not.toBeNull()
  expect(proxy.asked).toEqual(['example.com:443'])
})
