import type { ClientRequest, AgentOptions as HttpAgentOptions } from 'node:http'
import { Agent as HttpAgent } from 'node:http'
import type { AgentOptions as HttpsAgentOptions } from 'node:https'
import { Agent as HttpsAgent } from 'node:https'
import type { LookupFunction } from 'node:net'
import { isIP, Socket } from 'node:net'
import type { AddressGuard } from './address-guard.ts'
import { AttemptFailed } from './attempt-error.ts'
import type { Lookup } from './resolver.ts'

/**
 * How long an idle connection can be used again. Most consumers close idle connections after 5 s or more. With a
 * shorter time here, a request never meets a connection that its consumer is closing, which would fail the attempt.
 */
const KEEP_ALIVE_MS = 1_000
/** No `maxSockets`: a request that waits for a socket uses up its timeout. `ConcurrencyLimit` limits attempts. */
const KEEP_ALIVE: HttpAgentOptions = { keepAlive: true, timeout: KEEP_ALIVE_MS }
/** Explicit, so that neither NODE_TLS_REJECT_UNAUTHORIZED nor Node's command line can weaken it. */
const TLS: HttpsAgentOptions = { rejectUnauthorized: true, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] }

/** The default size of the pieces in which a response is parsed. */
const PIECE_BYTES = 1024

export const MAX_HEADER_BYTES = 16 * 1024
/** Interim responses (RFC 9110, section 15.2) accepted before the final one, with at most `MAX_HEADER_BYTES` in all. */
const MAX_INTERIM_RESPONSES = 16

/** An option of requests: the instance that the request is for. DNS look-ups are limited for each instance. */
export interface OwnedRequest {
  owner?: string | undefined
}

interface Connector {
  agentFor(protocol: string): HttpAgent
  /** Closes all connections, including those in use. */
  destroy(): void
}

/**
 * Opens connections, with three checks:
 *
 * 1. A host that is an IP address, because Node does not resolve those.
 * 2. Every address of a name. If one is not allowed, none is. The connection goes to a checked address, so DNS rebinding
 *    has no effect.
 * 3. The peer of the open connection, before a byte is written.
 */
export function createConnector({
  guard,
  resolve,
  pieceBytes = PIECE_BYTES,
}: {
  guard: AddressGuard
  resolve: Lookup
  /** Larger for long bodies. */
  pieceBytes?: number
}): Connector {
  function lookupFor(port: number, owner: string | undefined): LookupFunction {
    return (hostname, options, callback) => {
      resolve(hostname, owner).then(
        addresses => {
          const first = addresses[0]
          if (first === undefined || !addresses.every(({ address }) => guard.allows(address, port))) {
            callback(blocked(`an address of ${hostname}`), '')
          } else if (options.all) callback(null, [...addresses])
          else callback(null, first.address, first.family)
        },
        error => callback(error, ''),
      )
    }
  }

  function guarded(agent: HttpAgent): HttpAgent {
    const open = agent.createConnection.bind(agent)
    agent.createConnection = (options, callback) => {
      const host = options.host ?? ''
      const port = Number(options.port)
      const { owner } = options as OwnedRequest
      if (isIP(host) !== 0 && !guard.allows(host, port)) return new Socket().destroy(blocked(host))
      const socket = open({ ...options, lookup: lookupFor(port, owner) }, callback) as Socket
      socket.prependOnceListener('connect', () => {
        const { remoteAddress = '' } = socket
        if (!guard.allows(remoteAddress, port)) socket.destroy(blocked(remoteAddress))
      })
      return inPieces(socket, pieceBytes)
    }
    return agent
  }

  const http = guarded(new HttpAgent(KEEP_ALIVE))
  const https = guarded(new HttpsAgent({ ...KEEP_ALIVE, ...TLS }))

  return {
    agentFor: protocol => (protocol === 'https:' ? https : http),
    destroy() {
      http.destroy()
      https.destroy()
    },
  }
}

function blocked(target: string): AttemptFailed {
  return new AttemptFailed('blocked_address', `The service may not connect to ${target}.`)
}

/**
 * Passes received bytes to Node's parser in small pieces. The parser parses the whole piece even after the request is
 * destroyed, and 64 KiB can contain thousands of interim responses.
 */
function inPieces(socket: Socket, pieceBytes: number): Socket {
  const push = socket.push.bind(socket)
  socket.push = (chunk: Buffer | null) => {
    if (chunk === null || chunk.length <= pieceBytes) return push(chunk)
    let wantsMore = true
    for (let at = 0; at < chunk.length && !socket.destroyed; at += pieceBytes) {
      wantsMore = push(chunk.subarray(at, at + pieceBytes))
    }
    return wantsMore
  }
  return socket
}

export function limitInterimResponses(request: ClientRequest, onTooMany: () => void): void {
  let responses = 0
  let headerBytes = 0
  request.on('information', ({ rawHeaders }) => {
    responses += 1
    for (const text of rawHeaders) headerBytes += text.length
    if (responses > MAX_INTERIM_RESPONSES || headerBytes > MAX_HEADER_BYTES) onTooMany()
  })
}
