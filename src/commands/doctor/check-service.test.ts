import { createServer, type Server } from 'node:http'
import { expect, test } from 'vitest'
import { checkService } from './check-service.ts'

test('a service at a port that browsers block is found', async () => {
  const { server, port } = await listenAt([10_080, 6_000, 6_666, 6_667, 6_668, 6_669])
  try {
    expect(await checkService({ host: '127.0.0.1', port })).toMatchObject({ state: 'ready' })
  } finally {
    server.close()
  }
})

/** At the first port that is free. */
async function listenAt([port, ...others]: number[]): Promise<{ server: Server; port: number }> {
  if (port === undefined) throw new Error('All these ports are taken.')
  const server = createServer((_, response) => response.end('{"status":"ready"}'))
  const isOpen = await new Promise(resolve => {
    server.once('listening', () => resolve(true)).once('error', () => resolve(false))
    server.listen(port, '127.0.0.1')
  })
  return isOpen ? { server, port } : listenAt(others)
}
