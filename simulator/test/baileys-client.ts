import makeWASocket, {
  type AuthenticationCreds,
  Browsers,
  initAuthCreds,
  type SignalDataTypeMap,
  type SignalKeyStore,
  type UserFacingSocketConfig,
  type WAMessage,
  type WASocket,
} from 'baileys'
import { createSilentLogger } from './silent-logger.ts'

export function textOf({ message }: WAMessage): string | undefined {
  return message?.conversation ?? message?.extendedTextMessage?.text ?? undefined
}

/** The state that a Baileys client keeps between two connections. */
export interface ClientState {
  creds: AuthenticationCreds
  keys: Map<string, unknown>
}

export interface Receipt {
  id: string
  status: 'delivered' | 'read' | 'error'
  error?: string
}

export interface Seen {
  qrs: string[]
  closes: (number | undefined)[]
  acks: { id: string; error: string | undefined }[]
  /** Receipts as they arrive on the wire. When Baileys processes several together, it reports only the last. */
  receipts: Receipt[]
  /** IDs of the messages that Baileys has reported as read. */
  read: Set<string>
  messages: { message: WAMessage; type: string }[]
  /** IDs of the messages that have arrived on the wire, whether or not they could be decrypted. */
  arrived: Set<string>
}

/** An unmodified Baileys client with its keys in memory. It reconnects after 515, as a driver must. */
export class BaileysClient {
  readonly seen: Seen = {
    qrs: [],
    closes: [],
    acks: [],
    receipts: [],
    read: new Set(),
    messages: [],
    arrived: new Set(),
  }
  readonly state: ClientState
  sock: WASocket
  isOpen = false
  readonly #url: string
  readonly #config: Partial<UserFacingSocketConfig>
  /** The messages that it may be asked to send again. */
  readonly #sent = new Map<string, NonNullable<WAMessage['message']>>()
  #stopped = false

  constructor(url: string, state?: ClientState, config: Partial<UserFacingSocketConfig> = {}) {
    this.#url = url
    this.state = state ?? { creds: initAuthCreds(), keys: new Map() }
    this.#config = config
    this.sock = this.#connect()
  }

  get phone(): string {
    return this.state.creds.me!.id.split(':')[0]!
  }

  get lid(): string {
    return `${this.state.creds.me!.lid!.split(':')[0]!}@lid`
  }

  texts(): string[] {
    return this.seen.messages.flatMap(({ message }) => textOf(message) ?? [])
  }

  find(text: string): WAMessage | undefined {
    return this.seen.messages.find(({ message }) => textOf(message) === text)?.message
  }

  async send(jid: string, text: string): Promise<string> {
    const sent = await this.sock.sendMessage(jid, { text })
    this.#sent.set(sent!.key.id!, sent!.message!)
    return sent!.key.id!
  }

  /** Reconnects with the kept state. */
  reconnect(): void {
    this.#stopped = false
    this.sock = this.#connect()
  }

  stop(): void {
    this.#stopped = true
    this.isOpen = false
    this.sock.end(undefined)
  }

  #connect(): WASocket {
    const sock = makeWASocket({
      waWebSocketUrl: this.#url,
      auth: { creds: this.state.creds, keys: memoryKeys(this.state.keys) },
      logger: createSilentLogger(),
      browser: Browsers.ubuntu('Chrome'),
      emitOwnEvents: false,
      fireInitQueries: false,
      markOnlineOnConnect: false,
      shouldSyncHistoryMessage: () => false,
      getMessage: async ({ id }) => this.#sent.get(id ?? ''),
      ...this.#config,
    })
    const { seen } = this
    sock.ev.on('creds.update', update => Object.assign(this.state.creds, update))
    sock.ev.on('connection.update', ({ connection, lastDisconnect, qr }) => {
      if (qr) seen.qrs.push(qr)
      if (connection === 'open') this.isOpen = true
      if (connection !== 'close') return
      this.isOpen = false
      const error = lastDisconnect?.error as { output?: { statusCode?: number } } | undefined
      seen.closes.push(error?.output?.statusCode)
      if (error?.output?.statusCode === 515 && !this.#stopped) this.sock = this.#connect()
    })
    sock.ws.on('CB:ack,class:message', (ack: { attrs: Record<string, string> }) => {
      seen.acks.push({ id: ack.attrs['id']!, error: ack.attrs['error'] })
    })
    sock.ws.on('CB:message', ({ attrs }: { attrs: Record<string, string> }) => seen.arrived.add(attrs['id']!))
    sock.ws.on('CB:receipt', ({ attrs: { id, type } }: { attrs: Record<string, string> }) => {
      if (type === undefined) seen.receipts.push({ id: id!, status: 'delivered' })
      if (type === 'read') seen.receipts.push({ id: id!, status: 'read' })
    })
    sock.ev.on('messages.update', updates => {
      for (const { key, update } of updates) {
        if (update.status === 4) seen.read.add(key.id!)
        if (update.status === 0) {
          seen.receipts.push({ id: key.id!, status: 'error', error: update.messageStubParameters?.[0] as string })
        }
      }
    })
    sock.ev.on('message-receipt.update', updates => {
      for (const { key, receipt } of updates) {
        if (receipt.readTimestamp) seen.read.add(key.id!)
      }
    })
    sock.ev.on('messages.upsert', ({ messages, type }) => {
      for (const message of messages) seen.messages.push({ message, type })
    })
    return sock
  }
}

export function memoryKeys(store: Map<string, unknown>): SignalKeyStore {
  return {
    get: async <T extends keyof SignalDataTypeMap>(type: T, ids: string[]) => {
      const found: Record<string, SignalDataTypeMap[T]> = {}
      for (const id of ids) {
        const value = store.get(`${type}/${id}`)
        if (value !== undefined) found[id] = structuredClone(value) as SignalDataTypeMap[T]
      }
      return found
    },
    set: async data => {
      for (const [type, entries] of Object.entries(data)) {
        for (const [id, value] of Object.entries(entries ?? {})) {
          if (value === null || value === undefined) store.delete(`${type}/${id}`)
          else store.set(`${type}/${id}`, structuredClone(value))
        }
      }
    },
  }
}
