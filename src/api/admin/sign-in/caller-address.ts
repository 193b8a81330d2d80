import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'

/** What a provider gives to one customer at least (RFC 6177). */
const IPV6_PREFIX_BITS = 64

/**
 * Who calls, as a trusted proxy says, else the peer. What is no plain address (some proxies add the caller's port, which is
 * another each time) counts as the proxy's own.
 */
export function callerAddress({ ip, socket }: FastifyRequest): string {
  return isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip
}

/**
 * The network that guesses from an address count against, in one spelling: an IPv4 address itself, also where it is mapped
 * into IPv6; of an IPv6 address the /64, whose addresses belong to one caller. The zone is this host's own name.
 */
export function networkOf(address: string): string {
  const plain = address.replace(/%.*$/s, '')
  if (isIP(plain) === 0) return address
  const parsed = ipaddr.process(plain)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${IPV6_PREFIX_BITS}`)
  return `${network.toString()}/${IPV6_PREFIX_BITS}`
}
