import { pathToFileURL } from 'node:url'
import type { WASocket } from 'baileys'
import { createSilentLogger } from '../../simulator/test/silent-logger.ts'
import { silenceSignalConsole } from '../../src/whatsapp/baileys/signal/quiet-libsignal.ts'
import { until } from '../until.ts'

silenceSignalConsole()

/** The main file (absolute path) of another version of Baileys, such as 6.7, installed anywhere. Default: the version that Pombal uses. */
const OTHER_BAILEYS = process.env['BARE_BAILEYS']
const { makeWASocket, useMultiFileAuthState } = (await import(
  OTHER_BAILEYS === undefined ? 'baileys' : pathToFileURL(OTHER_BAILEYS).href
)) as typeof import('baileys')

/** A program as in the README of Baileys: it stores its session in a folder, and reconnects whenever it is cut off. */
export class BareProgram {
  readonly texts: string[] = []
  readonly closes: (number | undefined)[] = []
  qr: string | null = null
  isOpen = false
  readonly #url: string
  readonly #folder: string
  #socket: WASocket | null = null
  #stopped = false
  /** Writes of credentials, which have to end before the folder is read. */
  readonly #writes: Promise<void>[] = []

  constructor(url: string, folder: string) {
    this.#url = url
    this.#folder = folder
  }

  async start(): Promise<this> {
    this.#stopped = false
    await this.#connect()
    return this
  }

  /** Links by the code that `scan` gets, and waits for the login. */
  async link(scan: (qr: string) => Promise<unknown>): Promise<void> {
    await scan(await until('a QR code', () => this.qr))
    await until('the login', () => this.isOpen)
  }

  async send(number: string, text: string): Promise<void> {
    await this.#socket!.sendMessage(`${number}@s.whatsapp.net`, { text })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#socket?.end(undefined)
    await Promise.all(this.#writes)
  }

  async #connect(): Promise<void> {
    const { state, saveCreds } = await useMultiFileAuthState(this.#folder)
    const socket = makeWASocket({ waWebSocketUrl: this.#url, auth: state, logger: createSilentLogger() })
    this.#socket = socket
    socket.ev.on('creds.update', () => void this.#writes.push(saveCreds()))
    socket.ev.on('messages.upsert', ({ messages }) => {
      for (const { message } of messages) {
        const text = message?.conversation ?? message?.extendedTextMessage?.text
        if (text) this.texts.push(text)
      }
    })
    socket.ev.on('connection.update', ({ connection, lastDisconnect, qr }) => {
      if (qr) this.qr = qr
      if (connection === 'open') this.isOpen = true
      if (connection !== 'close') return
      this.isOpen = false
      const error = lastDisconnect?.error as { output?: { statusCode?: number } } | undefined
      this.closes.push(error?.output?.statusCode)
      const isLinked = error?.output?.statusCode === 515
      if (isLinked && !this.#stopped) void Promise.all(this.#writes).then(() => this.#connect())
    })
  }
}
