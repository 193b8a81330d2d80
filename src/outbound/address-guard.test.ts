import { networkInterfaces } from 'node:os'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AddressPolicy } from './address-guard.ts'
import { createAddressGuard } from './address-guard.ts'

const OWN_PORT = 3000
const CLOSED: AddressPolicy = { loopbackAndPrivateAllowed: false, allowedNetworks: [], ownPorts: [OWN_PORT] }
const closed = createAddressGuard(CLOSED)
const open = createAddressGuard({ ...CLOSED, loopbackAndPrivateAllowed: true })
const everything = createAddressGuard({
  ...CLOSED,
  loopbackAndPrivateAllowed: true,
  allowedNetworks: ['0.0.0.0/0', '::/0'],
})

const PUBLIC = ['8.8.8.8', '1.1.1.1', '203.0.114.1', '2606:4700:4700::1111', '2a00:1450:4003::1', '64:ff9b::8.8.8.8']

const PRIVATE = [
  '127.0.0.1',
  '127.255.255.254',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '::1',
  'fc00::1',
  'fdff::1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
]

const NEVER = [
  '169.254.169.254',
  '169.254.0.1',
  '169.254.170.2',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'fd00:ec2::254',
  'fd20:ce::254',
  'fd00:c1::a9fe:a9fe',
  'fd00:42::42',
  'fd00:a9fe:a9fe::1',
  'fd00:100::100:200',
  '168.63.129.16',
  '192.0.0.192',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::169.254.169.254',
  '::ffff:0:169.254.169.254',
  '64:ff9b::169.254.169.254',
  '64:ff9b::a83f:8110',
  '64:ff9b:1::169.254.169.254',
  '100.100.100.200',
  '2002:a9fe:a9fe::1',
]

const NEITHER = [
  '0.0.0.0',
  '0.1.2.3',
  '::',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
  '192.0.2.1',
  '198.51.100.1',
  '203.0.113.1',
  '198.18.0.1',
  '192.88.99.1',
  'ff02::1',
  'fec0::1',
  '100::1',
  '2001:db8::1',
  '2001::1',
  '2002:0808:0808::1',
  '2002:7f00:1::1',
  '3fff::1',
  '5f00::1',
  '::7f00:1',
  '::127.0.0.1',
  '::8.8.8.8',
  '::ffff:0:127.0.0.1',
  '::ffff:0:8.8.8.8',
  '64:ff9b::127.0.0.1',
  '64:ff9b::10.0.0.1',
  '64:ff9b:1::8.8.8.8',
  '4000::1',
  'not an address',
  '',
  'localhost',
]

test('if ports are listed, only those are reached, except where an allowed network names another one', () => {
  const guard = createAddressGuard({
    ...CLOSED,
    allowedNetworks: ['10.1.0.0/16', { network: '10.2.0.0/16', port: 8443 }, { network: '0.0.0.0/0', port: 81 }],
    ports: [80, 443],
  })
  const reached = (address: string) => [80, 443, 8443, 81].filter(port => guard.allows(address, port))
  expect(reached('8.8.8.8')).toEqual([80, 443, 81])
  expect(reached('10.1.0.1')).toEqual([80, 443, 81])
  expect(reached('10.2.0.1')).toEqual([8443, 81])
  expect(reached('169.254.169.254')).toEqual([])
  expect(reached('::1')).toEqual([])
  const ofName = (port: number) => guard.checkLiteral(new URL(`http://example.com:${port}/`))
  expect([80, 443, 8443, 81].map(ofName)).toEqual(Array(4).fill('not_literal'))
  expect([22, 8080].map(ofName)).toEqual(['blocked', 'blocked'])
})

describe('allowed addresses', () => {
  test.each(PUBLIC)('%s, always', address => {
    expect(closed.allows(address, 443)).toBe(true)
    expect(open.allows(address, 443)).toBe(true)
  })

  test.each(PRIVATE)('%s, only where loopback and private networks are allowed', address => {
    expect(closed.allows(address, 8080)).toBe(false)
    expect(open.allows(address, 8080)).toBe(true)
  })

  test.each(NEVER)('%s, never: not even when the operator names every network there is', address => {
    expect(closed.allows(address, 80)).toBe(false)
    expect(open.allows(address, 80)).toBe(false)
    expect(everything.allows(address, 80)).toBe(false)
  })

  test.each(NEITHER)('%j is refused even where loopback and private networks are allowed', address => {
    expect(closed.allows(address, 80)).toBe(false)
    expect(open.allows(address, 80)).toBe(false)
  })

  test('an allowed network is allowed, and no address outside it', () => {
    const guard = createAddressGuard({ ...CLOSED, allowedNetworks: ['10.1.0.0/16', 'fd12::/16', '192.168.7.7'] })
    expect(guard.allows('10.1.2.3', 80)).toBe(true)
    expect(guard.allows('::ffff:10.1.2.3', 80)).toBe(true)
    expect(guard.allows('fd12::9', 80)).toBe(true)
    expect(guard.allows('192.168.7.7', 80)).toBe(true)
    expect(guard.allows('10.2.0.1', 80)).toBe(false)
    expect(guard.allows('fd13::9', 80)).toBe(false)
    expect(guard.allows('192.168.7.8', 80)).toBe(false)
    expect(guard.allows('127.0.0.1', 80)).toBe(false)
  })

  test('the ports of this process are blocked on every address of this machine', () => {
    const own = Object.values(networkInterfaces()).flatMap(list => list?.map(({ address }) => address) ?? [])
    for (const address of ['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '::', '::ffff:127.0.0.1', ...own]) {
      expect(everything.allows(address, OWN_PORT), address).toBe(false)
    }
    expect(open.allows('127.0.0.1', OWN_PORT + 1)).toBe(true)
    expect(open.allows('8.8.8.8', OWN_PORT)).toBe(true)
  })

  test('ports that are opened later are blocked too', () => {
    const ports: number[] = []
    const guard = createAddressGuard({ ...CLOSED, loopbackAndPrivateAllowed: true, ownPorts: ports })
    expect(guard.allows('127.0.0.1', 4000)).toBe(true)
    ports.push(4000)
    expect(guard.allows('127.0.0.1', 4000)).toBe(false)
  })

  test('embedding a refused IPv4 address in IPv6 does not make it allowed', () => {
    const octet = fc.integer({ min: 0, max: 255 })
    const prefix = fc.constantFrom('::ffff:', '::', '::ffff:0:', '64:ff9b::')
    fc.assert(
      fc.property(octet, octet, octet, octet, prefix, (a, b, c, d, before) => {
        const plain = `${a}.${b}.${c}.${d}`
        return !closed.allows(before + plain, 80) || closed.allows(plain, 80)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('an IP address in a URL', () => {
  const loopback = [
    'http://127.0.0.1/',
    'http://127.1/',
    'http://0x7f000001/',
    'http://0x7f.0.0.1/',
    'http://2130706433/',
    'http://017700000001/',
    'http://127.0.0.1./',
    'http://%31%32%37.0.0.1/',
    'http://１２７.0.0.1/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[0:0:0:0:0:ffff:7f00:1]/',
  ]

  test.each(loopback)('%s is loopback', url => {
    expect(closed.checkLiteral(new URL(url))).toBe('blocked')
    expect(open.checkLiteral(new URL(url))).toBe('allowed')
  })

  test.each([
    'http://169.254.169.254/latest/meta-data',
    'http://0xa9fea9fe/',
    'http://2852039166/',
    'https://[::ffff:a9fe:a9fe]/',
    'https://[::169.254.169.254]/',
    'https://[fe80::1]/',
    'http://0/',
    'http://0.0.0.0:8080/',
    'http://[::]/',
    `http://localhost.:${OWN_PORT}@127.0.0.1:${OWN_PORT}/`,
    `http://127.0.0.1:${OWN_PORT}/`,
  ])('%s is blocked even where loopback and private networks are allowed', url => {
    expect(open.checkLiteral(new URL(url))).toBe('blocked')
  })

  test('the default port of a scheme is checked too', () => {
    const guard = createAddressGuard({ ...CLOSED, loopbackAndPrivateAllowed: true, ownPorts: [80, 443] })
    expect(guard.checkLiteral(new URL('http://127.0.0.1/'))).toBe('blocked')
    expect(guard.checkLiteral(new URL('https://127.0.0.1/'))).toBe('blocked')
    expect(guard.checkLiteral(new URL('https://127.0.0.1:80/'))).toBe('blocked')
    expect(guard.checkLiteral(new URL('https://127.0.0.1:8443/'))).toBe('allowed')
  })

  test.each([
    'http://localhost/',
    'https://example.com/',
    'http://127.0.0.1.nip.io/',
    'http://metadata.google.internal/',
  ])('%s is a name: its addresses are judged at each attempt', url => {
    expect(closed.checkLiteral(new URL(url))).toBe('not_literal')
  })

  test('public addresses are allowed', () => {
    expect(closed.checkLiteral(new URL('https://8.8.8.8/hook'))).toBe('allowed')
    expect(closed.checkLiteral(new URL('https://[2606:4700:4700::1111]/hook'))).toBe('allowed')
  })
})

test('an allowed network is a CIDR or one address; anything else throws', () => {
  const withNetwork = (network: string) => () => createAddressGuard({ ...CLOSED, allowedNetworks: [network] })
  for (const network of ['10.0.0.0/8', 'fd00::/8', '192.168.1.1', '::1']) expect(withNetwork(network)).not.toThrow()
  for (const network of ['10.0.0.0/33', 'example.com', '', 'fd00::/129']) expect(withNetwork(network)).toThrow()
})
