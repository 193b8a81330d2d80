import type { Socket } from 'node:net'

const VERSION = 5
const NO_LOGIN = 0
const WITH_LOGIN = 2
const NONE_ACCEPTED = 0xff
const IPV4 = 1
const NAME = 3
const SUCCEEDED = 0
const NOT_ALLOWED = 2

/** The server's side of SOCKS 5 (RFC 1928) with user names and passwords (RFC 1929), up to the answer to the request. */
export class SocksServerProtocol {
  readonly #socket: Socket
  readonly #login: { user: string; password: string } | null
  #step: 'greeting' | 'login' | 'request' | 'done' = 'greeting'
  onRequest: (destination: string, answer: (isOpen: boolean) => void) => void = () => undefined

  constructor(socket: Socket, login: { user: string; password: string } | null) {
    this.#socket = socket
    this.#login = login
    socket.on('readable', () => this.#read())
  }

  #read(): void {
    while (this.#step !== 'done') {
      const bytes = this.#socket.read() as Buffer | null
      if (bytes === null) return
      const length = this.#lengthOf(bytes)
      if (length > bytes.length) {
        this.#socket.unshift(bytes)
        return
      }
      if (bytes.length > length) this.#socket.unshift(bytes.subarray(length))
      this.#take(bytes.subarray(0, length))
    }
  }

  /** The length of the message that begins with `bytes`; infinite while it is unknown. */
  #lengthOf(bytes: Buffer): number {
    const at = (index: number) => bytes[index] ?? Number.POSITIVE_INFINITY
    if (this.#step === 'greeting') return 2 + at(1)
    if (this.#step === 'login') return 3 + at(1) + at(2 + at(1))
    return 4 + (at(3) === NAME ? 1 + at(4) : at(3) === IPV4 ? 4 : 16) + 2
  }

  #take(message: Buffer): void {
    if (this.#step === 'greeting') this.#greet(message)
    else if (this.#step === 'login') this.#checkLogin(message)
    else this.#request(message)
  }

  #greet(message: Buffer): void {
    const wanted = this.#login ? WITH_LOGIN : NO_LOGIN
    if (!message.subarray(2).includes(wanted)) {
      this.#socket.end(Buffer.of(VERSION, NONE_ACCEPTED))
      this.#step = 'done'
      return
    }
    this.#socket.write(Buffer.of(VERSION, wanted))
    this.#step = this.#login ? 'login' : 'request'
  }

  #checkLogin(message: Buffer): void {
    const userEnd = 2 + (message[1] ?? 0)
    const user = message.subarray(2, userEnd).toString()
    const password = message.subarray(userEnd + 1).toString()
    const isRight = user === this.#login?.user && password === this.#login.password
    this.#socket.write(Buffer.of(1, isRight ? 0 : 1))
    this.#step = isRight ? 'request' : 'done'
    if (!isRight) this.#socket.end()
  }

  #request(message: Buffer): void {
    this.#step = 'done'
    this.#socket.removeAllListeners('readable')
    const address = message.subarray(4, -2)
    const host = message[3] === NAME ? address.subarray(1).toString() : Array.from(address).join('.')
    this.onRequest(`${host}:${message.readUInt16BE(message.length - 2)}`, isOpen => {
      this.#socket.write(Buffer.of(VERSION, isOpen ? SUCCEEDED : NOT_ALLOWED, 0, IPV4, 0, 0, 0, 0, 0, 0))
    })
  }
}
