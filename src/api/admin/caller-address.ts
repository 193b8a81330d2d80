import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'

/**
 * Who calls, as a trusted proxy says, else the peer. What is no plain address (some proxies add the caller's port, which is
 * another each time) counts as the proxy's own.
 */
export function callerAddress({ ip, socket }: FastifyRequest): string {
  return isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip
}
