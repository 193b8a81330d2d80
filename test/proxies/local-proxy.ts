import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TlsCertificate } from '../../simulator/src/wire/tls-certificate.ts'
import { SocksServerProtocol } from './socks-server.ts'

export interface LocalProxyOptions {
  kind: 'http' | 'https' | 'socks5'
  /** Required of its users. Default: none. */
  login?: { user: string; password: string }
  /** The certificate of an `https` proxy. */
  certificate?: TlsCertificate
  /** Replacements for the destinations of names and addresses, as `host:port`. Default: none. */
  routes?: Readonly<Record<string, string>>
}

/** A proxy on loopback that records its tunnels. */
export class LocalProxy implements AsyncDisposable {
  readonly #options: LocalProxyOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** The destinations of the requested tunnels. */
  readonly asked: string[] = []
  /** The source ports of its connections to its destinations. */
  readonly ports = new Set<number>()
  /** From now on it opens no tunnel. */
  refuses = false
  /** From now on it accepts connections and answers nothing. */
  hangs = false

  private constructor(options: LocalProxyOptions) {
    this.#options = options
    this.#server = this.#createServer()
    this.#server.on('connection', (socket: Socket) => this.#track(socket))
  }

  static async listen(options: LocalProxyOptions, port = 0, host = '127.0.0.1'): Promise<LocalProxy> {
    const proxy = new LocalProxy(options)
    proxy.#server.listen(port, host)
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** @param login written as it is, so it may be wrong. Default: the right one */
  url(login = this.#options.login, host = '127.0.0.1'): string {
    const credentials = login ? `${encodeURIComponent(login.user)}:${encodeURIComponent(login.password)}@` : ''
    return `${this.#options.kind}://${credentials}${host}:${this.port}`
  }

  /** Ends every tunnel. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    this.cut()
    await once(this.#server, 'close')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #createServer(): Server {
    const { kind, certificate } = this.#options
    if (kind === 'socks5') return createServer(socket => this.#speakSocks(socket))
    const server = kind === 'https' ? createHttpsServer({ ...certificate }) : createHttpServer()
    server.on('connect', (request: IncomingMessage, socket: Duplex) => this.#answerConnect(request, socket))
    return server
  }

  #answerConnect(request: IncomingMessage, near: Duplex): void {
    const { login } = this.#options
    near.on('error', () => undefined)
    if (this.hangs) return
    const expected = login && `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}`
    if (expected && request.headers['proxy-authorization'] !== expected) {
      near.end('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n')
      return
    }
    this.#tunnel(request.url ?? '', near, isOpen =>
      near.write(isOpen ? 'HTTP/1.1 200 Connection established\r\n\r\n' : 'HTTP/1.1 403 Forbidden\r\n\r\n'),
    )
  }

  #speakSocks(near: Socket): void {
    if (this.hangs) return
    const protocol = new SocksServerProtocol(near, this.#options.login ?? null)
    protocol.onRequest = (destination, answer) => this.#tunnel(destination, near, answer)
  }

  #tunnel(destination: string, near: Duplex, answer: (isOpen: boolean) => void): void {
    this.asked.push(destination)
    if (this.refuses) {
      answer(false)
      near.end()
      return
    }
    const { host, port } = split(this.#options.routes?.[destination] ?? destination)
    const far = connect({ host, port, noDelay: true })
    this.#track(far)
    far.once('connect', () => {
      this.ports.add(far.localPort ?? 0)
      answer(true)
      near.pipe(far).pipe(near)
    })
    far.once('error', () => answer(false))
    far.on('close', () => near.destroy())
    near.on('close', () => far.destroy())
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket))
  }
}

function split(destination: string): { host: string; port: number } {
  const at = destination.lastIndexOf(':')
  return { host: destination.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(destination.slice(at + 1)) }
}
