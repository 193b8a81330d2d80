import type { Agent } from 'node:https'
import type { Simulator } from '@pombal/simulator'
import makeWASocket, {
  type AuthenticationCreds,
  type BaileysEventMap,
  initAuthCreds,
  jidNormalizedUser,
  type WAMessage,
  type WASocket,
} from 'baileys'
import { onTestFinished } from 'vitest'
import { memoryKeys } from './baileys-client.ts'
import { createSilentLogger } from './silent-logger.ts'
import { until } from './wait.ts'
import { startSimulator } from './world.ts'

type Events = { [Name in keyof BaileysEventMap]?: BaileysEventMap[Name][] }

/** A program as the README of Baileys shows it: it sets only the URL and its storage. */
export class Program {
  readonly events: Events = {}
  readonly creds: AuthenticationCreds = initAuthCreds()
  readonly closes: unknown[] = []
  /** The errors that Baileys logged. */
  readonly complaints: (string | undefined)[] = []
  qr = ''
  isOpen = false
  sock: WASocket
  readonly #url: string
  readonly #agent: Agent | undefined
  readonly #keys = memoryKeys(new Map())

  constructor(url: string, agent?: Agent) {
    this.#url = url
    this.#agent = agent
    this.sock = this.#connect()
  }

  get jid(): string {
    return jidNormalizedUser(this.creds.me?.id)
  }

  get number(): string {
    return this.jid.split('@')[0]!
  }

  get lid(): string {
    return jidNormalizedUser(this.creds.me?.lid)
  }

  all<Name extends keyof BaileysEventMap>(name: Name): BaileysEventMap[Name][] {
    return (this.events[name] as BaileysEventMap[Name][] | undefined) ?? []
  }

  /** The first message that matches, once it has arrived. */
  received(fits: (message: WAMessage) => unknown, what: string): Promise<WAMessage> {
    return until(
      () =>
        this.all('messages.upsert')
          .flatMap(({ messages }) => messages)
          .find(one => fits(one)),
      what,
    )
  }

  #connect(): WASocket {
    const complain = (_: unknown, sentence?: string) => void this.complaints.push(sentence)
    const logger = { ...createSilentLogger(), error: complain, child: () => logger }
    const auth = { creds: this.creds, keys: this.#keys }
    const sock = makeWASocket({ waWebSocketUrl: this.#url, auth, logger, ...(this.#agent && { agent: this.#agent }) })
    sock.ev.process(events => {
      Object.assign(this.creds, events['creds.update'])
      for (const [name, event] of Object.entries(events)) {
        const seen = this.events as Record<string, unknown[]>
        seen[name] = [...(seen[name] ?? []), event]
      }
      const { connection, qr, lastDisconnect } = events['connection.update'] ?? {}
      if (qr) this.qr = qr
      if (connection === 'open') this.isOpen = true
      if (connection !== 'close') return
      const code = (lastDisconnect?.error as { output?: { statusCode?: number } } | undefined)?.output?.statusCode
      this.closes.push(code)
      if (code === 515) this.sock = this.#connect()
    })
    return sock
  }
}

/** A network with the options of the stand-alone program. */
export function startNetwork(faults?: string[]): Promise<Simulator> {
  return startSimulator({ syncsAfterLinking: true, readsForClients: false }, faults)
}

/** A program that is linked to the account of this number, and ends with its test. */
export async function startProgram(simulator: Simulator, number: string, name: string): Promise<Program> {
  const program = new Program(simulator.url)
  onTestFinished(() => program.sock.end(undefined))
  await until(() => program.qr !== '', 'a QR code')
  await simulator.scanQr(program.qr, number, name)
  await until(() => program.isOpen, 'the login')
  return program
}
