import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** PostgreSQL's protocol 3.0 (its manual, chapter "Message Formats"): a type, a length that counts itself, a body. */
const PROTOCOL = 196_608
const SSL_REQUEST = 80_877_103

interface Message {
  type: string
  bytes: Buffer
}

/** Splits a stream into messages. A client's first message has no type. */
class Messages {
  #rest: Buffer = Buffer.alloc(0)
  #untyped: boolean

  constructor(startsUntyped: boolean) {
    this.#untyped = startsUntyped
  }

  take(chunk: Buffer): Message[] {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const messages: Message[] = []
    for (;;) {
      const lengthAt = this.#untyped ? 0 : 1
      if (this.#rest.length < lengthAt + 4) return messages
      const end = lengthAt + this.#rest.readInt32BE(lengthAt)
      if (this.#rest.length < end) return messages
      const bytes = this.#rest.subarray(0, end)
      this.#rest = this.#rest.subarray(end)
      const type = this.#untyped ? '' : String.fromCharCode(bytes[0] ?? 0)
      if (this.#untyped && bytes.readInt32BE(4) !== SSL_REQUEST) this.#untyped = false
      messages.push({ type, bytes })
    }
  }
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** A session of the database, lent to one client for a transaction at a time. */
interface Backend {
  socket: Socket
  messages: Messages
}

const READY = message('Z', Buffer.from('I'))

/**
 * A pooler in transaction mode, like PgBouncer, in front of a server that trusts everybody: each transaction of a
 * client gets whichever session of the database was given back last.
 */
export async function startTransactionPooler(databaseUrl: string): Promise<{ url: string; close(): void }> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const idle: Backend[] = []

  async function openBackend(): Promise<Backend> {
    const socket = connect(Number(target.port), target.hostname)
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    const parameters = Buffer.from(`user\0${target.username}\0database\0${target.pathname.slice(1)}\0\0`)
    const startup = Buffer.alloc(8)
    startup.writeInt32BE(startup.length + parameters.length, 0)
    startup.writeInt32BE(PROTOCOL, 4)
    socket.write(Buffer.concat([startup, parameters]))
    const messages = new Messages(false)
    for (;;) {
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      if (messages.take(chunk).some(({ type }) => type === 'Z')) return { socket, messages }
    }
  }

  function serve(client: Socket): void {
    sockets.add(client)
    client.on('error', () => client.destroy())
    const messages = new Messages(true)
    let backend: Backend | null = null
    let work = Promise.resolve()

    /** Forwards one request and returns the answers. The session is kept while a transaction is open. */
    async function ask(request: Buffer): Promise<void> {
      backend ??= idle.pop() ?? (await openBackend())
      backend.socket.write(request)
      for (;;) {
        const [chunk] = (await once(backend.socket, 'data')) as [Buffer]
        client.write(chunk)
        const end = backend.messages.take(chunk).findLast(({ type }) => type === 'Z')
        if (end === undefined) continue
        if (String.fromCharCode(end.bytes[5] ?? 0) === 'I') {
          idle.push(backend)
          backend = null
        }
        return
      }
    }

    let gathered: Buffer[] = []
    client.on('data', chunk => {
      for (const { type, bytes } of messages.take(chunk)) {
        if (type === '' && bytes.readInt32BE(4) === SSL_REQUEST) client.write('N')
        else if (type === '') {
          client.write(Buffer.concat([message('R', Buffer.alloc(4)), message('K', randomBytes(8)), READY]))
        } else if (type === 'X') client.end()
        else {
          gathered.push(bytes)
          // A simple query, or the end of an extended one.
          if (type !== 'Q' && type !== 'S') continue
          const request = Buffer.concat(gathered)
          gathered = []
          work = work
            .then(() => ask(request))
            .catch(() => {
              client.destroy()
            })
        }
      }
    })
  }

  const server = createServer(serve).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(databaseUrl)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
