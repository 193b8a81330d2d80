import { isIPv4, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Network = [Address, number]

/** The addresses that the service may connect to for callers: webhooks (contract §5), and files to send (contract §3). */
export interface AddressPolicy {
  loopbackAndPrivateAllowed: boolean
  /** CIDRs or single addresses that are not public but allowed. With a port: only at that port. */
  allowedNetworks: readonly (string | NetworkAtPort)[]
  /** The only ports that may be reached, except those of `allowedNetworks`. Default: any. */
  ports?: readonly number[]
  /** The ports that this process listens on, which may grow. They are blocked on this machine's addresses. */
  ownPorts: readonly number[]
}

interface NetworkAtPort {
  network: string
  port: number
}

export interface AddressGuard {
  /** @param address an IP address; anything else is not allowed */
  allows(address: string, port: number): boolean
  /**
   * Checks a URL whose host is an IP address in any notation. A host that is a name is `not_literal`, unless no address
   * may be reached at its port.
   */
  checkLiteral(url: URL): 'allowed' | 'blocked' | 'not_literal'
}

/** Link-local addresses and the metadata services of clouds. No setting allows these. */
const NEVER: readonly Network[] = [
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200/32', // Alibaba Cloud
  '168.63.129.16/32', // Azure
  '192.0.0.192/32', // Oracle Cloud
  'fd00:ec2::/32', // AWS
  'fd20:ce::254/128', // Google Cloud
  'fd00:c1::a9fe:a9fe/128', // Oracle Cloud
  'fd00:42::42/128', // Scaleway
  'fd00:a9fe:a9fe::1/128', // Akamai (Linode)
  'fd00:100::100:200/128', // Alibaba Cloud
].map(cidr => ipaddr.parseCIDR(cidr))

/** The part of IPv6 assigned to global unicast. The range `unicast` of ipaddr.js contains more. */
const GLOBAL_UNICAST: Network = ipaddr.parseCIDR('2000::/3')
const NAT64: Network = ipaddr.parseCIDR('64:ff9b::/96')

/** IPv6 networks whose addresses contain an IPv4 address, and the index of its first byte. */
const EMBEDDING: readonly (readonly [Network, number])[] = [
  [NAT64, 12],
  [ipaddr.parseCIDR('::/96'), 12],
  [ipaddr.parseCIDR('::ffff:0:0:0/96'), 12],
  // Local NAT64 (RFC 8215) with the usual /96 prefix. Allowed only by `allowedNetworks`.
  [ipaddr.parseCIDR('64:ff9b:1::/48'), 12],
  [ipaddr.parseCIDR('2002::/16'), 2],
]
const IPV4_BYTES = 4

const LOOPBACK_AND_PRIVATE = new Set(['loopback', 'private', 'uniqueLocal', 'carrierGradeNat'])

/** @throws Error if an allowed network is neither a CIDR nor an address */
export function createAddressGuard(policy: AddressPolicy): AddressGuard {
  const named: Network[] = []
  const atPort: { network: Network; port: number }[] = []
  for (const allowed of policy.allowedNetworks) {
    if (typeof allowed === 'string') named.push(parseNetwork(allowed))
    else atPort.push({ network: parseNetwork(allowed.network), port: allowed.port })
  }

  function allows(literal: string, port: number): boolean {
    const address = parseAddress(literal)
    if (address === null || isIn(address, NEVER)) return false
    const embedded = embeddedIpv4(address)
    if (embedded !== null && isIn(embedded, NEVER)) return false
    if (policy.ownPorts.includes(port) && isOfThisMachine(address)) return false
    if (atPort.some(allowed => allowed.port === port && isIn(address, [allowed.network]))) return true
    if (policy.ports && !policy.ports.includes(port)) return false
    if (isIn(address, named)) return true
    if (LOOPBACK_AND_PRIVATE.has(address.range())) return policy.loopbackAndPrivateAllowed
    return isPublic(address)
  }

  function checkLiteral(url: URL) {
    const port = portOf(url.protocol, url.port)
    const literal = url.hostname.replace(/^\[|\]$/g, '')
    if (parseAddress(literal) !== null) return allows(literal, port) ? 'allowed' : 'blocked'
    const isUsed = !policy.ports || policy.ports.includes(port) || atPort.some(allowed => allowed.port === port)
    return isUsed ? 'not_literal' : 'blocked'
  }

  return { allows, checkLiteral }
}

/** The port of a URL; 0 for a scheme without a default port. */
export function portOf(protocol: string, port: string): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : protocol === 'http:' ? 80 : 0
}

function parseNetwork(text: string): Network {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text)
  const address = ipaddr.process(text)
  return [address, address.toByteArray().length * 8]
}

/** Turns an IPv4-mapped IPv6 address into IPv4, and drops the zone of a link-local address. */
function parseAddress(literal: string): Address | null {
  const unzoned = literal.split('%')[0] ?? ''
  if (isIPv4(unzoned)) return ipaddr.process(unzoned)
  return isIPv6(unzoned) ? ipaddr.process(undotted(unzoned)) : null
}

/** Writes `::a.b.c.d` in hexadecimal. With dots, ipaddr.js would parse it as an IPv4-mapped address. */
function undotted(ipv6: string): string {
  return new URL(`http://[${ipv6}]`).hostname.slice(1, -1)
}

function isIn(address: Address, networks: readonly Network[]): boolean {
  for (const [network, bits] of networks) {
    if (address.kind() === network.kind() && address.match(network, bits)) return true
  }
  return false
}

function embeddedIpv4(address: Address): Address | null {
  for (const [network, start] of EMBEDDING) {
    if (isIn(address, [network])) return ipaddr.fromByteArray(address.toByteArray().slice(start, start + IPV4_BYTES))
  }
  return null
}

/** 6to4 and Teredo are not public. A NAT64 address is public if its IPv4 address is. */
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
