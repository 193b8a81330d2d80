import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Logger } from 'pino'
import type { MetricsText } from './metrics.ts'

export interface MetricsServer {
  port: number
  close(): Promise<void>
}

/** A scrape is a line or two: whatever takes longer is no scraper. */
const TIMEOUT_MS = 5_000
const LOOK_FOR_LATE_MS = 1_000
/** Beyond it the oldest connection makes room: a scraper that has just come is never refused. */
const MAX_CONNECTIONS = 32

/**
 * `GET /metrics` on a port of its own and without a key, for a network that only the operator's own machines reach.
 * @throws NodeJS.ErrnoException when the port is taken
 */
export async function startMetricsServer(
  address: { host: string; port: number },
  render: () => Promise<MetricsText>,
  logger: Logger,
): Promise<MetricsServer> {
  const listener: RequestListener = (request, response) => {
    request.resume()
    const path = request.url?.split('?', 1)[0]
    if (path !== '/metrics') response.writeHead(404).end()
    else if (request.method !== 'GET') response.writeHead(405, { allow: 'GET' }).end()
    else {
      render().then(
        ({ contentType, text }) => response.writeHead(200, { 'content-type': contentType }).end(text),
        error => {
          logger.error({ err: error }, 'metrics.failed')
          response.writeHead(500).end()
        },
      )
    }
  }
  const server = createServer(
    { requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS, connectionsCheckingInterval: LOOK_FOR_LATE_MS },
    listener,
  )
  // Each answer ends its connection: what is kept open is not a scraper's.
  server.maxRequestsPerSocket = 1
  keepNewest(server, MAX_CONNECTIONS)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(address.port, address.host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

function keepNewest(server: Server, count: number): void {
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    const [oldest] = sockets
    if (sockets.size > count) oldest?.destroy()
  })
}
