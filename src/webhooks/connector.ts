import type { LookupFunction } from 'node:net'
import { isIP } from 'node:net'
import { buildConnector } from 'undici'
import type { AddressGuard } from './address-guard.ts'
import { portOf } from './address-guard.ts'
import type { Lookup } from './resolver.ts'

/** The webhook leads to an address that webhooks may not reach. */
export class BlockedAddress extends Error {
  override readonly name = 'BlockedAddress'
  readonly code = 'BLOCKED_ADDRESS'
}

const MAX_CONNECTORS = 64
/** Written out, so that neither NODE_TLS_REJECT_UNAUTHORIZED nor Node's own options can weaken it. */
const TLS = { rejectUnauthorized: true, minVersion: 'TLSv1.2' } as const

export interface ConnectorOptions {
  guard: AddressGuard
  resolve: Lookup
  /** For the connection and its TLS handshake. */
  timeoutMs: number
}

/**
 * Opens connections for undici, each judged three times: as a literal (Node asks no look-up for those), by every address that
 * the name resolves to (one that is refused refuses all, and what was judged is what is dialled, so that
 * DNS rebinding gains nothing), and by the peer that was reached, before a byte of the request is written.
 */
export function createConnector({ guard, resolve, timeoutMs }: ConnectorOptions): buildConnector.connector {
  const connectors = new Map<number, buildConnector.connector>()

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

  /** One per port, since a look-up is not told the port; the oldest goes when there are many. */
  function connectorFor(port: number): buildConnector.connector {
    const existing = connectors.get(port)
    if (existing) return existing
    const created = buildConnector({ ...TLS, allowH2: false, timeout: timeoutMs, lookup: lookupFor(port) })
    connectors.set(port, created)
    for (const oldest of connectors.keys()) {
      if (connectors.size <= MAX_CONNECTORS) break
      connectors.delete(oldest)
    }
    return created
  }

  return (options, callback) => {
    const port = portOf(options.protocol, options.port)
    if (isIP(options.hostname) !== 0 && !guard.allows(options.hostname, port)) {
      callback(new BlockedAddress(`${options.hostname} is refused.`), null)
      return
    }
    connectorFor(port)(options, (error, socket) => {
      if (error !== null) callback(error, null)
      else if (guard.allows(socket.remoteAddress ?? '', port)) callback(null, socket)
      else {
        const refusal = new BlockedAddress(`The peer ${socket.remoteAddress} is refused.`)
        socket.on('error', () => {}).destroy()
        callback(refusal, null)
      }
    })
  }
}
