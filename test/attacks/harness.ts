import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createDatabase } from '../databases/database.ts'
import { insertEvents } from '../databases/insert-events.ts'
import { killOnExit } from '../kill-on-exit.ts'
import { Service } from '../service.ts'
import type { AttackName } from './attacks.ts'
import { type Measured, measureCallers, residentMib } from './callers.ts'

const ATTACKER = join(import.meta.dirname, 'attacker.ts')
/** As many as one page of a list shows, each with a text of 1 MB. */
const LARGE_EVENTS = { count: 200, length: 1_000_000 }
const PASSWORD = 'a password that nobody guesses'

/** A service with one caller, a password and a metrics port. Attacks run in processes of their own. */
export class AttackHarness {
  readonly service: Service
  readonly metricsUrl: string
  readonly #token: string
  readonly #timeoutMs: number

  private constructor(service: Service, token: string, timeoutMs: number) {
    this.service = service
    this.metricsUrl = /Metrics +(\S+)/.exec(service.output)?.[1] ?? ''
    this.#token = token
    this.#timeoutMs = timeoutMs
  }

  /** @param timeoutMs a call that takes longer counts as refused */
  static async start(timeoutMs: number, env: Record<string, string | undefined> = {}): Promise<AttackHarness> {
    const settings = { SANDBOX: 'on', METRICS_PORT: '0', LOG_LEVEL: 'info', ...env }
    const service = await new Service({ env: settings }).start()
    const { token } = await service.admin.createConnected()
    const harness = new AttackHarness(service, token, timeoutMs)
    await service.admin.setPassword(PASSWORD)
    return harness
  }

  post(path: string, body: object): Promise<Response> {
    return fetch(`${this.service.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  }

  /** An instance on SQLite with large events: those of this version, and older ones with the whole text. @returns the path of their list */
  async #addLargeEvents(): Promise<string> {
    const { admin, dataDir } = this.service
    const { id } = await admin.createInstance('whatsapp')
    const database = await createDatabase('sqlite', '')
    for (const form of ['old', 'new'] as const) {
      const statements = insertEvents('sqlite', id, { ...LARGE_EVENTS, form })
      for (const statement of statements) await database.run(statement, dataDir)
    }
    return `/admin/v1/instances/${id}/events?limit=${LARGE_EVENTS.count}`
  }

  /** Runs the attack, and measures what other callers see meanwhile, and by how much the service grows. */
  async under(name: AttackName, forMs: number, meanwhile = async () => {}): Promise<Measured & { grewMib: number }> {
    const list =
      name === 'large-lists' ? { LIST_PATH: await this.#addLargeEvents(), LIST_KEY: this.service.adminKey } : {}
    const beforeMib = residentMib(this.service.pid ?? 0)
    const ports = ['--port', portOf(this.service.url), '--metrics-port', portOf(this.metricsUrl)]
    const attacker = spawn(process.execPath, [ATTACKER, name, ...ports], {
      env: { ...process.env, ...list },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    killOnExit(attacker)
    const ended = once(attacker, 'exit')
    try {
      const measured = this.measure(forMs)
      await Promise.race([once(attacker.stdout, 'data'), ended])
      if (attacker.exitCode !== null) throw new Error(`The attack exited with ${attacker.exitCode}.`)
      await meanwhile()
      const figures = await measured
      return { ...figures, grewMib: figures.peakMib - beforeMib }
    } finally {
      attacker.kill('SIGKILL')
      await ended
    }
  }

  measure(forMs: number): Promise<Measured> {
    const { url, pid = 0 } = this.service
    return measureCallers({ url: url ?? '', token: this.#token, pid, timeoutMs: this.#timeoutMs }, forMs)
  }

  dispose(): Promise<void> {
    return this.service.dispose()
  }
}

function portOf(url: string | null): string {
  return new URL(url ?? '').port
}
