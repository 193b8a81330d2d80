import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'

/** PostgreSQL's message "NotificationResponse". */
const NOTIFICATION = 'A'.charCodeAt(0)
const LENGTH_BYTES = 4

export interface TcpProxyOptions {
  /** Added to each direction. */
  delayMs?: number
  /** Drops PostgreSQL's notifications. Works only without TLS. */
  dropNotifications?: boolean
}

/** A proxy between a program and a server on this machine that simulates network faults. */
export class TcpProxy {
  readonly #target: URL
  readonly #options: TcpProxyOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Connections whose data is dropped. They never recover, even after `restore`. */
  readonly #silenced = new WeakSet<Socket>()
  #blackholed = false
  /** Notifications that were dropped. */
  dropped = 0

  private constructor(target: URL, options: TcpProxyOptions) {
    this.#target = target
    this.#options = options
    this.#server = createServer({ noDelay: true }, socket => this.#accept(socket))
  }

  /** @param target the server's URL. Only its host and port are used */
  static async listen(target: string, options: TcpProxyOptions = {}): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(target), options)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  /** The target's URL with the proxy's address. */
  get url(): string {
    const url = new URL(this.#target)
    url.hostname = '127.0.0.1'
    url.port = String((this.#server.address() as AddressInfo).port)
    return url.href
  }

  /** From now on drops the data of all connections, existing and new, without closing either side. */
  blackhole(): void {
    this.#blackholed = true
    for (const socket of this.#sockets) this.#silenced.add(socket)
  }

  /** New connections work again. Those that were blackholed do not. */
  restore(): void {
    this.#blackholed = false
  }

  /** Resets all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(near: Socket): void {
    this.#track(near)
    if (this.#blackholed) {
      this.#silenced.add(near)
      near.on('data', () => undefined)
      return
    }
    const far = createConnection({ host: this.#target.hostname, port: Number(this.#target.port), noDelay: true })
    this.#track(far)
    this.#forward(near, far)
    this.#forward(far, near, this.#options.dropNotifications ? this.#withoutNotifications() : undefined)
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => undefined)
  }

  #forward(from: Socket, to: Socket, change: (chunk: Buffer) => Buffer = chunk => chunk): void {
    const { delayMs = 0 } = this.#options
    const later = (work: () => void) => (delayMs === 0 ? work() : setTimeout(work, delayMs))
    from.on('data', chunk => {
      if (this.#silenced.has(from)) return
      later(() => {
        if (!this.#silenced.has(to) && to.writable) to.write(change(chunk))
      })
    })
    from.on('close', () => later(() => (this.#silenced.has(to) ? undefined : to.destroy())))
  }

  /** Parses the server's messages: a type byte, a length that includes itself, and a body. */
  #withoutNotifications(): (chunk: Buffer) => Buffer {
    let rest: Buffer = Buffer.alloc(0)
    return chunk => {
      rest = Buffer.concat([rest, chunk])
      const kept: Buffer[] = []
      while (rest.length > LENGTH_BYTES) {
        const size = 1 + rest.readUInt32BE(1)
        if (rest.length < size) break
        if (rest[0] === NOTIFICATION) this.dropped += 1
        else kept.push(rest.subarray(0, size))
        rest = rest.subarray(size)
      }
      return Buffer.concat(kept)
    }
  }
}
