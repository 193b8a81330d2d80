import { expect, test } from 'vitest'
import { networkOf, siteOf } from './caller-address.ts'

test.each([
  ['an IPv4 address', '203.0.113.7', '203.0.113.7'],
  ['an IPv4-mapped IPv6 address', '::ffff:203.0.113.7', '203.0.113.7'],
  ['the same in hexadecimal', '::FFFF:cb00:7107', '203.0.113.7'],
  ['an IPv6 address', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['its neighbour', '2001:db8:1:2:ffff::1', '2001:db8:1:2::/64'],
  ['another spelling', '2001:0DB8:0001:0002:0:0:0:1', '2001:db8:1:2::/64'],
  ['the next network', '2001:db8:1:3::1', '2001:db8:1:3::/64'],
  ['a link-local address with a zone', 'fe80::1%eth0', 'fe80::/64'],
  ['the same with another zone', 'fe80::1%\u0000x', 'fe80::/64'],
  ['loopback', '::1', '::/64'],
  ['text that is not an address', '', ''],
])('%s is reduced to its network', (_what, address, network) => {
  expect(networkOf(address)).toBe(network)
})

test.each([
  ['an IPv4 address', '203.0.113.7', '203.0.113.7'],
  ['an IPv6 address', '2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
  ['the next network', '2001:db8:1:3::1', '2001:db8:1::/48'],
  ['another site', '2001:db8:2:3::1', '2001:db8:2::/48'],
])('%s is reduced to its site', (_what, address, site) => {
  expect(siteOf(address)).toBe(site)
})
