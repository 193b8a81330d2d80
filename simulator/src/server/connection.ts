/**
 * One socket of a client. Its states:
 *
 *   hello      waits for the client's ephemeral key
 *   finish     has sent its own keys and waits for the client's
 *   open       stanzas pass in both directions and the role handles them (linking, or a linked client)
 *   closed     no stanza passes; any protocol error leads here
 *
 * Stanzas leave in `send` and arrive in `#take`. If a scenario is set, they pass through it there.
 */
import { proto } from 'baileys/WAProto/index.js'
import type { RawData, WebSocket } from 'ws'
import type { EventLoopBudget } from '../thread/event-loop-budget.ts'
import type { ServerIdentity } from '../wire/certificate.ts'
import { FrameReader, frame } from '../wire/frames.ts'
import { decodeNode, encodeNode, type Node } from '../wire/nodes.ts'
import { NoiseResponder, type NoiseTransport } from '../wire/noise.ts'
import { DelayLine } from './delay-line.ts'

/** Handles the stanzas of a connection, once the client is known. */
export interface Role {
  /** Resolves when the next stanza may be passed in. */
  receive(stanza: Node): Promise<void> | void
  closed(): void
}

/** Decides the fate of stanzas while it is set: it calls `write` and `accept` for those that continue. */
export interface Gate {
  readonly isSet: boolean
  leave(connection: Connection, stanza: Node): void
  arrive(connection: Connection, stanza: Node): Promise<void>
}

/** How long stanzas take. It may change. */
export interface Pace {
  readonly latencyMs: number
}

export interface Hello {
  payload: proto.ClientPayload
  noiseKey: Buffer
}

/** Chooses the role of a client. Null if the client was refused. */
export type Admit = (connection: Connection, hello: Hello) => Role | null

const MAX_HANDSHAKE_FRAME_BYTES = 64 * 1024
const MAX_FRAME_BYTES = 0xffffff
/** Reading from the socket pauses while more stanzas than this are waiting. */
const MAX_WAITING = 256
/** Time for the last stanza to reach the client before the socket closes. */
const LINGER_MS = 20

export class Connection {
  /** The account of this client. Null until it has logged in. */
  phone: string | null = null
  readonly #socket: WebSocket
  readonly #pace: Pace
  readonly #arriving = new DelayLine()
  readonly #leaving = new DelayLine()
  readonly #identity: ServerIdentity
  readonly #admit: Admit
  readonly #gate: Gate
  readonly #budget: EventLoopBudget
  readonly #log: (line: string) => void
  readonly #reader = new FrameReader(MAX_HANDSHAKE_FRAME_BYTES)
  #handshake: NoiseResponder | null = null
  #transport: NoiseTransport | null = null
  #role: Role | null = null
  #closed = false
  #waiting = 0
  #taking: Promise<void> = Promise.resolve()

  constructor(
    socket: WebSocket,
    pace: Pace & { identity: ServerIdentity; scenario: Gate; budget: EventLoopBudget; log: (line: string) => void },
    admit: Admit,
  ) {
    this.#socket = socket
    this.#identity = pace.identity
    this.#admit = admit
    this.#gate = pace.scenario
    this.#budget = pace.budget
    this.#log = pace.log
    this.#pace = pace
    socket.on('message', data => this.#arriving.add(pace.latencyMs, () => this.#guard(() => this.#read(data))))
    socket.on('close', () => this.#close())
    socket.on('error', () => this.close())
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** Does nothing on a closed connection. */
  send(stanza: Node): void {
    this.#leaving.add(this.#pace.latencyMs, () => this.#send(stanza))
  }

  #send(stanza: Node): void {
    if (this.#gate.isSet) this.#gate.leave(this, stanza)
    else this.write(stanza)
  }

  /** Sends a stanza, bypassing the scenario. */
  write(stanza: Node): void {
    const transport = this.#transport
    if (this.#closed || !transport) return
    this.#guard(() => this.#socket.send(frame(transport.seal(encodeNode(stanza)))))
  }

  /** Sends a last stanza, bypassing the scenario, and closes. */
  end(stanza: Node): void {
    this.#leaving.add(this.#pace.latencyMs, () => {
      this.write(stanza)
      this.#close()
      setTimeout(() => this.#socket.close(), LINGER_MS)
    })
  }

  close(): void {
    this.#close()
    this.#socket.terminate()
  }

  /** Closes because of an internal error. The client will reconnect. */
  fail(error: unknown): void {
    if (!this.#closed) this.#log(`connection closed: ${error instanceof Error ? error.message : String(error)}`)
    this.close()
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#arriving.clear()
    this.#leaving.clear()
    this.#role?.closed()
  }

  #guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.fail(error)
    }
  }

  #read(data: RawData): void {
    if (this.#closed) return
    const chunk = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)
    for (const one of this.#reader.push(chunk)) {
      if (this.#closed) return
      if (this.#transport) this.#arrived(decodeNode(this.#transport.open(one)))
      else this.#continueHandshake(one)
    }
  }

  #continueHandshake(message: Buffer): void {
    const { clientHello, clientFinish } = proto.HandshakeMessage.decode(message)
    if (!this.#handshake) {
      if (!clientHello?.ephemeral) throw new Error('no client hello')
      this.#handshake = new NoiseResponder(this.#identity.staticKey)
      const serverHello = this.#handshake.answerHello(clientHello.ephemeral, this.#identity.certificateChain)
      this.#socket.send(frame(proto.HandshakeMessage.encode({ serverHello }).finish()))
      return
    }
    if (!clientFinish?.static || !clientFinish.payload) throw new Error('no client finish')
    const { clientKey, payload, transport } = this.#handshake.readFinish(clientFinish.static, clientFinish.payload)
    this.#transport = transport
    this.#reader.maxFrameBytes = MAX_FRAME_BYTES
    this.#role = this.#admit(this, { payload: proto.ClientPayload.decode(payload), noiseKey: clientKey })
  }

  #arrived(stanza: Node): void {
    if (++this.#waiting === MAX_WAITING) this.#socket.pause()
    this.enqueue(() => this.#take(stanza))
  }

  /** Passes a stanza to the role. Does nothing on a closed connection. */
  async accept(stanza: Node): Promise<void> {
    if (!this.#closed) await this.#role?.receive(stanza)
  }

  /** Runs the work after the stanzas that have already arrived. */
  enqueue(work: () => Promise<void>): void {
    this.#taking = this.#taking.then(work).catch(error => this.fail(error))
  }

  async #take(stanza: Node): Promise<void> {
    await this.#budget.next()
    if (this.#waiting-- === MAX_WAITING) this.#socket.resume()
    if (this.#closed) return
    if (this.#gate.isSet) await this.#gate.arrive(this, stanza)
    else await this.accept(stanza)
  }
}
