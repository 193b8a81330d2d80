import { EventEmitter, once } from 'node:events'
import { type ClientRequest, request as httpRequest } from 'node:http'
import { type Agent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { SocksProxyAgent } from 'socks-proxy-agent'
import type { Dispatcher } from 'undici'
import { proxyPort } from '../../domain/connection/proxy-url.ts'
import { withDeadline } from '../../kit/deadline.ts'
import type { AddressGuard } from '../address-guard.ts'
import { fetchDispatcher } from '../fetch-dispatcher.ts'
import type { Lookup } from '../resolver.ts'
import { ProxyFailed, type ProxyFailure } from './proxy-failed.ts'
import { TunnelAgent, type TunnelOptions } from './tunnel-agent.ts'

/** From the start of the connection to the proxy until its answer. */
const TIMEOUT_MS = 15_000
/** Longer than the timeout of the proxy, so that a failure of the proxy is reported as such. */
const PROBE_TIMEOUT_MS = 20_000

type ProxyAgent = TunnelAgent | SocksProxyAgent

/** The proxy of an instance. The proxy resolves the names of servers, so not even a look-up bypasses it. */
export class InstanceProxy {
  readonly #url: URL
  readonly #guard: AddressGuard
  readonly #resolve: Lookup

  /** @param url as `findProxyUrlFault` accepts it */
  constructor(url: string, guard: AddressGuard, resolve: Lookup) {
    this.#url = new URL(url)
    this.#guard = guard
    this.#resolve = resolve
  }

  /**
   * An agent for the requests and sockets of `node:http`, `node:https` and `ws`. They fail with `ProxyFailed` if the proxy fails.
   * @param verifies whether the certificate of the server behind the proxy is verified. The proxy's always is
   */
  agent(verifies: boolean): Agent {
    const agent = this.#createAgent()
    agent.connect = this.#connectOrFail(agent, agent.connect.bind(agent))
    // Node merges these into the options of each request.
    Object.assign(agent.options, { rejectUnauthorized: verifies })
    return agent as unknown as Agent
  }

  /** The same for Node's own `fetch`, and for `https:` only. */
  dispatcher(verifies: boolean): Dispatcher {
    const agent = this.agent(verifies) as unknown as ProxyAgent
    return fetchDispatcher(({ hostname, port, servername }, callback) => {
      const options = {
        host: hostname,
        port: Number(port || 443),
        servername: servername ?? (isIP(hostname) === 0 ? hostname : undefined),
        rejectUnauthorized: verifies,
        secureEndpoint: true,
      }
      openSocket(agent, options as TunnelOptions).then(
        socket => callback(null, socket),
        error => callback(error, null),
      )
    })
  }

  /**
   * Sends a HEAD request to the server behind the proxy.
   * @returns null if it answers; `no_answer` if the proxy works and the server does not answer
   */
  async probe(server: URL, verifies: boolean): Promise<ProxyFailure | 'no_answer' | null> {
    const isSecure = server.protocol === 'wss:' || server.protocol === 'https:'
    const { hostname: host, port } = server
    const options = { method: 'HEAD', host, port: port || (isSecure ? 443 : 80), agent: this.agent(verifies) }
    const request = isSecure ? httpsRequest(options) : httpRequest(options)
    const failed = new AbortController()
    const answered = once(request, 'response', { signal: failed.signal })
    request.end()
    try {
      await withDeadline(PROBE_TIMEOUT_MS, answered)
      return null
    } catch (error) {
      return error instanceof ProxyFailed ? error.code : 'no_answer'
    } finally {
      failed.abort()
      request.on('error', () => undefined).destroy()
    }
  }

  #createAgent(): ProxyAgent {
    const lookup = this.#lookup()
    if (this.#url.protocol !== 'socks5:') return new TunnelAgent(this.#url, lookup)
    // With socks5h the name of the server is sent to the proxy.
    const remote = this.#url.href.replace(/^socks5:/, 'socks5h:')
    const agent = new SocksProxyAgent(remote, { socketOptions: { lookup } as object })
    // The agent would look up an IPv6 address with its brackets as a name (socks-proxy-agent 10, `parseSocksURL`).
    agent.proxy.host = this.#host
    return agent
  }

  #connectOrFail(agent: ProxyAgent, connect: ProxyAgent['connect']): ProxyAgent['connect'] {
    return async (request: ClientRequest, options: TunnelOptions) => {
      if (isIP(this.#host) !== 0 && !this.#guard.allows(this.#host, proxyPort(this.#url)))
        throw new ProxyFailed('PROXY_BLOCKED')
      const ended = new AbortController()
      // A SOCKS client ends by itself.
      const signal = agent instanceof TunnelAgent && { signal: ended.signal }
      const opening = connect(request, { ...options, ...signal }) as Promise<Socket>
      return withDeadline(TIMEOUT_MS, opening).catch(error => {
        ended.abort()
        opening.then(late => late.destroy()).catch(() => undefined)
        throw ProxyFailed.from(error)
      })
    }
  }

  /** A name, or an address without brackets. */
  get #host(): string {
    return this.#url.hostname.replace(/^\[|\]$/g, '')
  }

  /** Every address of the proxy's name must be allowed, and the connection goes to one that was checked. */
  #lookup(): LookupFunction {
    const port = proxyPort(this.#url)
    return (hostname, options, callback) => {
      this.#resolve(hostname).then(
        addresses => {
          const first = addresses[0]
          if (first === undefined || !addresses.every(({ address }) => this.#guard.allows(address, port)))
            callback(new ProxyFailed('PROXY_BLOCKED'), '')
          else if (options.all) callback(null, [...addresses])
          else callback(null, first.address, first.family)
        },
        error => callback(error, ''),
      )
    }
  }
}

/** `fetch` needs a socket whose handshake is complete. */
async function openSocket(agent: ProxyAgent, options: TunnelOptions): Promise<Socket> {
  const request = Object.assign(new EventEmitter(), { destroy: () => undefined })
  const socket = (await agent.connect(request as unknown as ClientRequest, options)) as Socket
  if (!(socket instanceof TLSSocket)) return socket
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(TIMEOUT_MS) })
  } catch (error) {
    socket.on('error', () => undefined).destroy()
    throw error
  }
  return socket
}
