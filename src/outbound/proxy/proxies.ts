import { type AddressPolicy, createAddressGuard } from '../address-guard.ts'
import { Resolver } from '../resolver.ts'
import { InstanceProxy } from './instance-proxy.ts'

const ONLY_PUBLIC: AddressPolicy = { loopbackAndPrivateAllowed: false, allowedNetworks: [], ownPorts: [] }

/** Opens proxies at allowed addresses, which are checked at every connection, because a name may get another address. */
export function createProxies(allowed = ONLY_PUBLIC): (url: string) => InstanceProxy {
  const guard = createAddressGuard(allowed)
  const resolver = new Resolver()
  return url => new InstanceProxy(url, guard, hostname => resolver.resolve(hostname))
}
