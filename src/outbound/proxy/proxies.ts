import { type AddressPolicy, createAddressGuard } from '../address-guard.ts'
import { Resolver } from '../resolver.ts'
import { InstanceProxy } from './instance-proxy.ts'

const ONLY_PUBLIC: AddressPolicy = { loopbackAndPrivateAllowed: false, allowedNetworks: [], ownPorts: [] }

/**
 * Few, because each WhatsApp thread has them, and the main thread for tests of proxies. Shared by all instances of a thread: a
 * look-up that hangs outlives its connection.
 */
const resolver = new Resolver({ maxInFlight: 3, reservedForKnown: 1, maxPerOwner: 1 })

/** Opens proxies at allowed addresses, which are checked at every connection, because a name may get another address. */
export function createProxies(allowed = ONLY_PUBLIC): (url: string, instanceId: string) => InstanceProxy {
  const guard = createAddressGuard(allowed)
  return (url, instanceId) => new InstanceProxy(url, guard, hostname => resolver.resolve(hostname, instanceId))
}
