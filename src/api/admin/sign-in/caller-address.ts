import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

/** The smallest IPv6 block that a provider assigns to a customer (RFC 6177). */
const IPV6_NETWORK_BITS = 64
/** The largest IPv6 block that a provider assigns to a customer. */
const IPV6_SITE_BITS = 48

/**
 * The caller's address as reported by a trusted proxy, else the peer's. Anything but a plain address (some proxies add the
 * caller's port) is replaced by the proxy's own address.
 */
export function callerAddress({ ip, socket }: FastifyRequest): string {
  return isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip
}

/**
 * The normalised network that wrong keys count against: an IPv4 address, even if mapped into IPv6, or the /64 of an IPv6
 * address, which belongs to one caller. The zone is removed.
 */
export function networkOf(address: string): string {
  return blockOf(address, IPV6_NETWORK_BITS)
}

/** The /48 of an IPv6 address, which may also belong to one customer. The same as `networkOf` for any other address. */
export function siteOf(address: string): string {
  return blockOf(address, IPV6_SITE_BITS)
}

function blockOf(address: string, ipv6Bits: number): string {
  const plain = address.replace(/%.*$/s, '')
  if (isIP(plain) === 0) return address
  const parsed = ipaddr.process(plain)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${ipv6Bits}`)
  return `${network.toString()}/${ipv6Bits}`
}
