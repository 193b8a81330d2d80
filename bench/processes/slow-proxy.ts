/** A network between nodes and their database: a proxy that delays what goes through it, alone in its process. */
import { TcpProxy } from '../../test/tcp-proxy.ts'
import { serve } from '../harness/remote.ts'

/** @param roundTripMs added to every way there and back. @returns the target's URL, by way of the proxy */
async function listen(target: string, roundTripMs: number): Promise<string> {
  return (await TcpProxy.listen(target, { delayMs: roundTripMs / 2 })).url
}

const methods = { listen }
export type SlowProxy = typeof methods
serve(methods)
