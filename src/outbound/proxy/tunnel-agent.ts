import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, isIPv6, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Agent, type AgentConnectOpts } from 'agent-base'
import { proxyPort } from '../../domain/connection/proxy-url.ts'
import { MAX_HEADER_BYTES } from '../connector.ts'
import { ProxyFailed } from './proxy-failed.ts'

const OK = 200
const LOGIN_REQUIRED = 407
/** Explicit, so that neither NODE_TLS_REJECT_UNAUTHORIZED nor Node's command line can weaken it. */
const TLS = { rejectUnauthorized: true, ALPNProtocols: ['http/1.1'] }

export type TunnelOptions = AgentConnectOpts & {
  /** Ends the attempt to open the tunnel. */
  signal?: AbortSignal
}

/**
 * Opens tunnels through an `http` or `https` proxy with CONNECT (RFC 9110, section 9.3.6). The proxy is treated as hostile: at
 * most `MAX_HEADER_BYTES` of its answer are read.
 */
export class TunnelAgent extends Agent {
  readonly #proxy: URL
  readonly #lookup: LookupFunction

  constructor(proxy: URL, lookup: LookupFunction) {
    super()
    this.#proxy = proxy
    this.#lookup = lookup
  }

  override async connect(_request: ClientRequest, options: TunnelOptions): Promise<Socket> {
    const { host = '', port, signal } = options
    const socket = await this.#open(`${isIPv6(host) ? `[${host}]` : host}:${port}`, signal)
    if (!options.secureEndpoint) return socket
    const { path: _path, servername = isIP(host) === 0 ? host : '', ...tls } = options
    return connectTls({ ...tls, servername, socket })
  }

  #open(target: string, signal: AbortSignal | undefined): Promise<Socket> {
    const { protocol, hostname } = this.#proxy
    const host = hostname.replace(/^\[|\]$/g, '')
    const request = (protocol === 'https:' ? httpsRequest : httpRequest)({
      method: 'CONNECT',
      host,
      port: proxyPort(this.#proxy),
      path: target,
      headers: { Host: target, 'Proxy-Connection': 'close', ...this.#login() },
      agent: false,
      lookup: this.#lookup,
      maxHeaderSize: MAX_HEADER_BYTES,
      // Node would take the name from the Host header.
      servername: isIP(host) === 0 ? host : '',
      ...TLS,
      ...(signal !== undefined && { signal }),
    })
    request.removeHeader('connection')
    // The parser does not count the empty lines before an answer.
    let bytes = 0
    const count = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_HEADER_BYTES) request.destroy(new Error('The answer of the proxy is too large.'))
    }
    return new Promise((resolve, reject) => {
      request
        .once('socket', socket => socket.on('data', count))
        .once('connect', ({ statusCode }, socket, head) => {
          socket.off('data', count)
          if (statusCode === OK) {
            if (head.length > 0) socket.unshift(head)
            resolve(socket)
          } else {
            socket.destroy()
            reject(new ProxyFailed(statusCode === LOGIN_REQUIRED ? 'PROXY_LOGIN' : 'PROXY_REFUSED'))
          }
        })
        .on('error', reject)
        .end()
    })
  }

  #login(): Record<string, string> {
    const { username, password } = this.#proxy
    if (username === '' && password === '') return {}
    const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`)
    return { 'Proxy-Authorization': `Basic ${login.toString('base64')}` }
  }
}
