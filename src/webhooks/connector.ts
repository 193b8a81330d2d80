import type { ClientRequestArgs, AgentOptions as HttpAgentOptions } from 'node:http'
import { Agent as HttpAgent } from 'node:http'
import type { AgentOptions as HttpsAgentOptions } from 'node:https'
import { Agent as HttpsAgent } from 'node:https'
import type { LookupFunction, Socket } from 'node:net'
import type { AddressGuard } from './address-guard.ts'
import { portOf } from './address-guard.ts'
import type { Lookup } from './resolver.ts'

/** The webhook leads to an address that webhooks may not reach. */
export class BlockedAddress extends Error {
  override readonly name = 'BlockedAddress'
  readonly code = 'BLOCKED_ADDRESS'
}

/**
 * An idle connection is not used again after this time. A consumer that closes idle connections later than this (most do
 * after 5 s or more) can thus not close one just as we write to it: such an attempt would fail without the
 * consumer's having seen it, and to repeat it unasked would make one attempt two requests.
 */
const KEEP_ALIVE_MS = 1_000
const KEEP_ALIVE: HttpAgentOptions = { keepAlive: true, timeout: KEEP_ALIVE_MS }
/** Written out, so that neither NODE_TLS_REJECT_UNAUTHORIZED nor Node's own options can weaken it. */
const TLS: HttpsAgentOptions = { rejectUnauthorized: true, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] }

/** Bytes of an answer that are parsed in one go. */
const PIECE_BYTES = 1024

export interface Connector {
  /** The options of `http.request` that a request to this URL needs. @throws BlockedAddress for a literal address */
  optionsFor(url: URL): ClientRequestArgs
  /** Ends every connection, those in use too. */
  destroy(): void
}

/**
 * Opens connections, each judged three times: as a literal (Node asks no look-up for those), by every address that
 * the name resolves to (one that is refused refuses all, and what was judged is what is dialled, so that
 * DNS rebinding gains nothing), and by the peer that was reached, before a byte is written.
 */
export function createConnector({ guard, resolve }: { guard: AddressGuard; resolve: Lookup }): Connector {
  function judgePeer(socket: Socket, port: number): Socket {
    socket.prependOnceListener('connect', () => {
      const { remoteAddress = '' } = socket
      if (!guard.allows(remoteAddress, port))
        socket.destroy(new BlockedAddress(`The peer ${remoteAddress} is refused.`))
    })
    return socket
  }

  function lookupFor(port: number): LookupFunction {
    return (hostname, options, callback) => {
      resolve(hostname).then(
        addresses => {
          const first = addresses[0]
          if (first === undefined || !addresses.every(({ address }) => guard.allows(address, port))) {
            callback(new BlockedAddress(`${hostname} resolves to an address that is refused.`), '')
          } else if (options.all) callback(null, [...addresses])
          else callback(null, first.address, first.family)
        },
        error => callback(error, ''),
      )
    }
  }

  class GuardedHttpAgent extends HttpAgent {
    override createConnection(...args: Parameters<HttpAgent['createConnection']>) {
      return inPieces(judgePeer(super.createConnection(...args) as Socket, Number(args[0].port)))
    }
  }

  class GuardedHttpsAgent extends HttpsAgent {
    override createConnection(...args: Parameters<HttpsAgent['createConnection']>) {
      return inPieces(judgePeer(super.createConnection(...args) as Socket, Number(args[0].port)))
    }
  }

  const http = new GuardedHttpAgent(KEEP_ALIVE)
  const https = new GuardedHttpsAgent({ ...KEEP_ALIVE, ...TLS })

  return {
    optionsFor(url) {
      if (guard.checkLiteral(url) === 'blocked') throw new BlockedAddress(`${url.hostname} is refused.`)
      const lookup = lookupFor(portOf(url.protocol, url.port))
      return { agent: url.protocol === 'https:' ? https : http, lookup }
    },
    destroy() {
      http.destroy()
      https.destroy()
    },
  }
}

/**
 * Hands what arrives to Node's parser piece by piece: it parses all that it is given, also once the request is destroyed, and
 * thousands of interim answers fit into the 64 KiB that the system hands over.
 */
function inPieces(socket: Socket): Socket {
  const push = socket.push.bind(socket)
  socket.push = (chunk: Buffer | null) => {
    if (chunk === null) return push(chunk)
    let wantsMore = true
    for (let at = 0; at < chunk.length && !socket.destroyed; at += PIECE_BYTES) {
      wantsMore = push(chunk.subarray(at, at + PIECE_BYTES))
    }
    return wantsMore
  }
  return socket
}
