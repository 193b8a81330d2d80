/** A network between nodes and their database: a proxy that adds latency, in its own process. */
import { TcpProxy } from '../../test/tcp-proxy.ts'
import { serve } from '../harness/remote.ts'

/** @param roundTripMs added to every round trip. @returns the target's URL through the proxy */
async function listen(target: string, roundTripMs: number): Promise<string> {
  return (await TcpProxy.listen(target, { delayMs: roundTripMs / 2 })).url
}

const methods = { listen }
export type SlowProxy = typeof methods
serve(methods)
