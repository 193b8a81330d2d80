import { availableParallelism } from 'node:os'
import { type AddressPolicy, createAddressGuard } from '../address-guard.ts'
import { Resolver } from '../resolver.ts'
import { InstanceProxy } from './instance-proxy.ts'

const ONLY_PUBLIC: AddressPolicy = { loopbackAndPrivateAllowed: false, allowedNetworks: [], ownPorts: [] }

/**
 * Divided among the WhatsApp threads, and the main thread for tests of proxies. By default these are as many as the cores. Together
 * with the DNS look-ups for webhooks and files this leaves two of the 64 look-ups that libuv runs at once (`bin/pombal.js`).
 */
const MAX_OF_NODE = 32
const LOOKUPS = Math.min(8, Math.max(3, Math.floor(MAX_OF_NODE / availableParallelism())))
/** The connection to the proxy has 15 s in all. */
const TIMEOUT_MS = 12_000

/** Shared by all instances of a thread: a DNS look-up that hangs outlives its connection. */
const resolver = new Resolver({
  maxInFlight: LOOKUPS,
  reservedForKnown: Math.ceil(LOOKUPS / 4),
  maxPerOwner: 1,
  timeoutMs: TIMEOUT_MS,
})

/** Opens proxies at allowed addresses, which are checked at every connection, because a name may get another address. */
export function createProxies(allowed = ONLY_PUBLIC): (url: string, instanceId: string) => InstanceProxy {
  const guard = createAddressGuard(allowed)
  return (url, instanceId) => new InstanceProxy(url, guard, hostname => resolver.resolve(hostname, instanceId))
}
