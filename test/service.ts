import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SECRETS } from '../src/environment.ts'
import { type AdminClient, adminClient, type InstanceClient, instanceClient } from './api-client.ts'
import { START_WITHIN_MS } from './deadlines.ts'
import { killOnExit } from './kill-on-exit.ts'
import { captureLog, noteSecret } from './logs/log-capture.ts'
import { until } from './until.ts'

const PROGRAM = join(import.meta.dirname, '../bin/pombal.js')
const BANNER_URL = /listens on (\S+)/

export interface ServiceOptions {
  /** Default: a temporary folder, which `dispose` erases. */
  dataDir?: string
  /** The working folder. Default: this process's. */
  cwd?: string
  /** Settings in addition to a free port on loopback and no limit of calls. Undefined removes a setting. */
  env?: Record<string, string | undefined>
  /** Options for Node itself. */
  nodeOptions?: readonly string[]
  /** The `bin/pombal.js` of another version. */
  program?: string
  /** An open file for the standard output. Default: a pipe that is read. */
  logTo?: number
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

/** One line of the service's log. */
export type LogLine = { level: number; msg?: string } & Record<string, unknown>

/** One run of the program, from its start to its end. */
class Boot {
  readonly exited: Promise<Exit>
  readonly #child: ChildProcess
  #output = ''
  #log = ''
  readonly #logLines: LogLine[] = []
  #parsedUntil = 0
  #url: string | null = null
  #ended = false

  constructor(options: ServiceOptions & { dataDir: string }) {
    this.#child = spawn(process.execPath, [...(options.nodeOptions ?? []), options.program ?? PROGRAM], {
      // Everything is logged, so the suite finds secrets at every level. Tests poll, so calls are not limited.
      env: {
        PATH: process.env['PATH'],
        HOST: '127.0.0.1',
        PORT: '0',
        DATA_DIR: options.dataDir,
        LOG_LEVEL: 'trace',
        RATE_LIMIT_PER_MINUTE: '1000000',
        ...options.env,
      },
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      stdio: ['ignore', options.logTo ?? 'pipe', 'pipe'],
    })
    this.#child.stdout?.setEncoding('utf8').on('data', text => {
      this.#log += text
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', text => {
        this.#output += text
        captureLog(text)
      })
    }
    for (const name of SECRETS) noteSecret(options.env?.[name] ?? '')
    killOnExit(this.#child)
    this.exited = new Promise(resolve => {
      // At this event the pipes are closed as well, so the output is complete.
      this.#child.once('close', (code, signal) => {
        this.#ended = true
        resolve({ code, signal })
      })
    })
  }

  get output(): string {
    return this.#output
  }

  /** The standard output alone. */
  get log(): string {
    return this.#log
  }

  /** Tests poll it, so each line is parsed once. */
  get logLines(): readonly LogLine[] {
    const end = this.#log.lastIndexOf('\n') + 1
    const lines = this.#log.slice(this.#parsedUntil, end).split('\n')
    this.#parsedUntil = end
    for (const line of lines) if (line.startsWith('{') && line.endsWith('}')) this.#logLines.push(JSON.parse(line))
    return this.#logLines
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Null until the banner is out, and after the process has ended. */
  get url(): string | null {
    this.#url ??= BANNER_URL.exec(this.#output)?.[1] ?? null
    return this.#ended ? null : this.#url
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  closeOutput(): void {
    this.#child.stdout?.destroy()
    this.#child.stderr?.destroy()
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }
}

/** The whole service as users run it: a process on a data folder that outlives each run. */
export class Service {
  readonly dataDir: string
  readonly #options: ServiceOptions
  #boots: Boot[] = []

  constructor(options: ServiceOptions = {}) {
    this.#options = options
    this.dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'pombal-test-'))
  }

  /** Starts the program and does not wait for it; one at a time. */
  boot(): void {
    if (this.#current && !this.#current.ended) throw new Error('The service is running.')
    this.#boots.push(new Boot({ ...this.#options, dataDir: this.dataDir }))
  }

  /** Resolves once the banner is out. @throws Error with its output when it ends before */
  async start(): Promise<this> {
    this.boot()
    await this.ready()
    return this
  }

  async ready(): Promise<string> {
    return until(
      'the banner',
      () => {
        if (this.#current?.ended) throw new Error(`The service ended during its start:\n${this.#current.output}`)
        return this.url
      },
      START_WITHIN_MS,
    )
  }

  /** Sends the signal and does not wait. */
  signal(signal: NodeJS.Signals): void {
    if (!this.#current) throw new Error('The service was never started.')
    this.#current.signal(signal)
  }

  /** Sends the signal and resolves when the process is gone. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    if (!this.#current) throw new Error('The service was never started.')
    this.#current.signal(signal)
    return this.#current.exited
  }

  /** Closes the reading end of its output. */
  closeOutput(): void {
    this.#current?.closeOutput()
  }

  async exited(): Promise<Exit> {
    if (!this.#current) throw new Error('The service was never started.')
    return this.#current.exited
  }

  async restart(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.kill(signal)
    await this.start()
  }

  /** Its URL, or null while it does not listen. */
  get url(): string | null {
    return this.#current?.url ?? null
  }

  /** The process ID of the current or last run. */
  get pid(): number | undefined {
    return this.#current?.pid
  }

  /** The number of starts. */
  get boots(): number {
    return this.#boots.length
  }

  /** The output of the current or last run, standard output and standard error. */
  get output(): string {
    return this.#current?.output ?? ''
  }

  /** The output of all runs. */
  get wholeOutput(): string {
    return this.#boots.map(boot => boot.output).join('')
  }

  /** The standard output of all runs. */
  get wholeLog(): string {
    return this.#boots.map(boot => boot.log).join('')
  }

  get logLines(): LogLine[] {
    return this.#boots.flatMap(boot => boot.logLines)
  }

  get adminKey(): string {
    const key = this.#options.env?.['ADMIN_KEY'] ?? readFileSync(join(this.dataDir, 'admin.key'), 'utf8').trim()
    noteSecret(key)
    return key
  }

  /** Follows the service to the port of each new run. */
  get admin(): AdminClient {
    return adminClient(() => this.#urlOrThrow(), this.adminKey)
  }

  instance(id: string, token: string): InstanceClient {
    return instanceClient(() => this.#urlOrThrow(), id, token)
  }

  async dispose(): Promise<void> {
    if (this.#current && !this.#current.ended) await this.kill('SIGKILL')
    if (this.#options.dataDir === undefined) rmSync(this.dataDir, { recursive: true, force: true })
  }

  get #current(): Boot | undefined {
    return this.#boots.at(-1)
  }

  #urlOrThrow(): string {
    const { url } = this
    if (url === null) throw new ServiceDown()
    return url
  }
}

/** The service is called while it does not listen. Callers treat it like a refused connection. */
export class ServiceDown extends Error {
  override readonly name = 'ServiceDown'
}

/** Started, with its banner out. */
export function startService(options: ServiceOptions = {}): Promise<Service> {
  return new Service(options).start()
}
