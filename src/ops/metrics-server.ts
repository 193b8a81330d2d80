import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Logger } from 'pino'
import type { MetricsText } from './metrics.ts'

interface MetricsServer {
  port: number
  close(): Promise<void>
}

/** The time limit of a request, which is only a few lines. */
const TIMEOUT_MS = 5_000
const TIMEOUT_CHECK_EVERY_MS = 1_000
/** A connection beyond this limit closes the oldest one, so that a new scrape is always accepted. */
const MAX_CONNECTIONS = 32

/**
 * Serves `GET /metrics` on a separate port without authentication, for networks that only the operator can reach.
 * @throws NodeJS.ErrnoException if the port is in use
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
    { requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS, connectionsCheckingInterval: TIMEOUT_CHECK_EVERY_MS },
    listener,
  )
  // Every response closes its connection.
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
