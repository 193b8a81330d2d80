import { isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Network = [Address, number]

/** Where webhooks may go (contract §5). */
export interface AddressPolicy {
  /** The installation serves this machine only, so its consumers may live here too. */
  loopbackAndPrivateAllowed: boolean
  /** CIDRs that the operator names; an address without a prefix means itself. */
  allowedNetworks: readonly string[]
  /** The ports that this process listens on. */
  ownPorts: readonly number[] | (() => readonly number[])
}

export type LiteralVerdict = 'allowed' | 'blocked' | 'not_literal'

export interface AddressGuard {
  /** @param address a literal IP address; anything else is refused */
  allows(address: string, port: number): boolean
  /** Judges a URL whose host is an address, in whatever notation; a host that is a name is `not_literal`. */
  checkLiteral(url: URL): LiteralVerdict
}

/** Link-local addresses, and where clouds keep what only their machines should read. No setting opens these. */
const NEVER: readonly Network[] = [
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200/32', // Alibaba Cloud
  '168.63.129.16/32', // Azure
  '192.0.0.192/32', // Oracle Cloud
  'fd00:ec2::/32', // AWS
  'fd20:ce::254/128', // Google Cloud
].map(cidr => ipaddr.parseCIDR(cidr))

/** The only part of IPv6 that is handed out for global unicast; ipaddr.js calls more than that `unicast`. */
const GLOBAL_UNICAST: Network = ipaddr.parseCIDR('2000::/3')
const NAT64: Network = ipaddr.parseCIDR('64:ff9b::/96')

/** Forms of IPv6 that lead to an IPv4 address, and the byte at which it begins in them. */
const EMBEDDING: readonly (readonly [Network, number])[] = [
  [NAT64, 12],
  [ipaddr.parseCIDR('::/96'), 12],
  [ipaddr.parseCIDR('::ffff:0:0:0/96'), 12],
  // RFC 8215: of a network's own NAT64, as most use it; public only where the operator names it.
  [ipaddr.parseCIDR('64:ff9b:1::/48'), 12],
  [ipaddr.parseCIDR('2002::/16'), 2],
]
const IPV4_BYTES = 4

/** Carrier-grade NAT is as private as the rest: nobody outside can be meant. */
const LOOPBACK_AND_PRIVATE = new Set(['loopback', 'private', 'uniqueLocal', 'carrierGradeNat'])

/** @throws Error for an allowed network that is not a CIDR; settings are checked with `isNetwork` before */
export function createAddressGuard(policy: AddressPolicy): AddressGuard {
  const named = policy.allowedNetworks.map(parseNetwork)
  const ownPorts = () => (typeof policy.ownPorts === 'function' ? policy.ownPorts() : policy.ownPorts)

  function allows(literal: string, port: number): boolean {
    const address = parseAddress(literal)
    if (address === null || isNever(address)) return false
    if (ownPorts().includes(port) && isOfThisMachine(address)) return false
    if (isIn(address, named)) return true
    if (LOOPBACK_AND_PRIVATE.has(address.range())) return policy.loopbackAndPrivateAllowed
    return isPublic(address)
  }

  function checkLiteral(url: URL): LiteralVerdict {
    const { hostname, protocol, port } = url
    const literal = hostname.replace(/^\[|\]$/g, '')
    if (parseAddress(literal) === null) return 'not_literal'
    return allows(literal, portOf(protocol, port)) ? 'allowed' : 'blocked'
  }

  return { allows, checkLiteral }
}

/** Whether a setting's text names a network: a CIDR, or one address. */
export function isNetwork(text: string): boolean {
  return ipaddr.isValidCIDR(text) || ipaddr.isValid(text)
}

/** The port that a URL means, 0 for a scheme without one. */
export function portOf(protocol: string, port: string): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : protocol === 'http:' ? 80 : 0
}

function parseNetwork(text: string): Network {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.toByteArray().length * 8]
}

/** Unwraps an IPv4 address mapped into IPv6; the zone of a link-local address says nothing about where it leads. */
function parseAddress(literal: string): Address | null {
  const unzoned = literal.split('%')[0] ?? ''
  if (isIPv4(unzoned)) return ipaddr.process(unzoned)
  return isIPv6(unzoned) ? ipaddr.process(undotted(unzoned)) : null
}

/** `::a.b.c.d` in hexadecimal: with dots, ipaddr.js takes it for a mapped address. */
function undotted(ipv6: string): string {
  return new URL(`http://[${ipv6}]`).hostname.slice(1, -1)
}

function isIn(address: Address, networks: readonly Network[]): boolean {
  return networks.some(([network, bits]) => address.kind() === network.kind() && address.match(network, bits))
}

function embeddedIpv4(address: Address): Address | null {
  const form = EMBEDDING.find(([network]) => isIn(address, [network]))
  if (form === undefined) return null
  const start = form[1]
  return ipaddr.fromByteArray(address.toByteArray().slice(start, start + IPV4_BYTES))
}

function isNever(address: Address): boolean {
  const embedded = embeddedIpv4(address)
  return isIn(address, NEVER) || (embedded !== null && isIn(embedded, NEVER))
}

/** Tunnelled forms (6to4, Teredo) are refused; a NAT64 address is as public as the IPv4 address in it. */
function isPublic(address: Address): boolean {
  if (address.kind() === 'ipv4') return address.range() === 'unicast'
  if (isIn(address, [NAT64])) return embeddedIpv4(address)?.range() === 'unicast'
  return address.range() === 'unicast' && isIn(address, [GLOBAL_UNICAST])
}

function isOfThisMachine(address: Address): boolean {
  if (address.range() === 'loopback' || address.range() === 'unspecified') return true
  const text = address.toString()
  return Object.values(networkInterfaces()).some(list =>
    list?.some(own => parseAddress(own.address)?.toString() === text),
  )
}
