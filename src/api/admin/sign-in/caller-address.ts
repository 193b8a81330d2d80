import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

/** The smallest IPv6 block that a provider assigns to a customer (RFC 6177). */
const IPV6_PREFIX_BITS = 64

/**
 * The caller's address as reported by a trusted proxy, else the peer's. Anything but a plain address (some proxies add the
 * caller's port) is replaced by the proxy's own address.
 */
export function callerAddress({ ip, socket }: FastifyRequest): string {
  return isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip
}

/**
 * The normalized network that wrong keys count against: an IPv4 address, also if mapped into IPv6, or the /64 of an IPv6
 * address, which belongs to one caller. The zone is removed.
 */
export function networkOf(address: string): string {
  const plain = address.replace(/%.*$/s, '')
  if (isIP(plain) === 0) return address
  const parsed = ipaddr.process(plain)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${IPV6_PREFIX_BITS}`)
  return `${network.toString()}/${IPV6_PREFIX_BITS}`
}
