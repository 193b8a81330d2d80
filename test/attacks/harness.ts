import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createDatabase } from '../databases/database.ts'
import { insertEvents } from '../databases/insert-events.ts'
import { killOnExit } from '../kill-on-exit.ts'
import { noteSecret } from '../logs/log-capture.ts'
import { Service } from '../service.ts'
import type { AttackKeys, AttackName } from './attacks.ts'
import { type Measured, measureCallers, residentMib } from './callers.ts'

const ATTACKER = join(import.meta.dirname, 'attacker.ts')
/** As many as one page of a list shows, each with a text of 1 MB. */
const LARGE_EVENTS = { count: 200, length: 1_000_000 }
const PASSWORD = 'a password that nobody guesses'

/** Attacks by callers with a key. */
const WITH_KEYS: readonly AttackName[] = ['large-lists', 'bodies-with-key', 'bodies-with-link', 'bodies-with-session']

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

  post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.service.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
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

  async #createKeys(name: AttackName): Promise<AttackKeys> {
    const { admin, adminKey } = this.service
    const { id, token } = await admin.createInstance('whatsapp')
    const authorization = `Bearer ${adminKey}`
    const link = await this.post(`/admin/v1/instances/${id}/links`, { expiresInMinutes: 60 }, { authorization })
    const account = { name: `Viewer of ${id}`, role: 'viewer', instances: [id] }
    const invited = await this.post('/admin/v1/accounts', account, { authorization })
    const invitation = await secretOf(invited)
    const accepted = await this.post('/admin/v1/invitations/accept', { token: invitation, password: PASSWORD })
    const session = accepted.headers.get('set-cookie')?.split(';')[0] ?? ''
    noteSecret(session.split('=')[1])
    const path = name === 'large-lists' ? await this.#addLargeEvents() : ''
    return { list: { path, key: adminKey }, token, session, link: await secretOf(link) }
  }

  /** Runs the attack, and measures what other callers see meanwhile, and by how much the service grows. */
  async under(name: AttackName, forMs: number, meanwhile = async () => {}): Promise<Measured & { grewMib: number }> {
    const keys = WITH_KEYS.includes(name) && { KEYS: JSON.stringify(await this.#createKeys(name)) }
    const beforeMib = residentMib(this.service.pid ?? 0)
    const ports = ['--port', portOf(this.service.url), '--metrics-port', portOf(this.metricsUrl)]
    const attacker = spawn(process.execPath, [ATTACKER, name, ...ports], {
      env: { ...process.env, ...keys },
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

/** The secret of a link, from the answer that shows it. */
async function secretOf(answer: Response): Promise<string> {
  const { data } = (await answer.json()) as { data: { url: string } }
  const secret = data.url.split('#')[1] ?? ''
  noteSecret(secret)
  return secret
}

function portOf(url: string | null): string {
  return new URL(url ?? '').port
}
