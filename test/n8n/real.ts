import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../databases/postgres.ts'
import { type Service, startService } from '../service.ts'
import { until } from '../until.ts'
import { PACKAGE } from './contexts.ts'

/**
 * `npm run test:n8n -- --real`: the nodes inside n8n itself, on PostgreSQL. A workflow of each trigger answers what a contact writes;
 * n8n is killed in between. n8n takes 2 GB, which are kept in the folder of temporary files for the next run.
 */

const VERSION = '2.38.7'
const INSTALLED = join(tmpdir(), `pombal-n8n-${VERSION}`)
const START_WITHIN_MS = 5 * 60_000
const RUN_WITHIN_MS = 2 * 60_000
const CONTACT = '5511987654321'
const ANSWERED = '5511911112222'
const WEBHOOK_ID = 'c0ffee00-0000-4000-8000-000000000001'
const OWNER = { email: 'owner@example.com', firstName: 'Ana', lastName: 'Lima', password: 'Passw0rd-for-tests' }

const startedAt = performance.now()

function say(line: string): void {
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${line}`)
}

function check(what: string, isRight: boolean, found: unknown): void {
  if (!isRight) throw new Error(`${what}: ${JSON.stringify(found)}`)
  say(`✓ ${what}`)
}

/** Without install scripts: those of `sqlite3` download a binary, which PostgreSQL does not need. */
function install(): void {
  if (existsSync(join(INSTALLED, 'node_modules/n8n/bin/n8n'))) return
  say(`n8n ${VERSION} from npm`)
  mkdirSync(INSTALLED, { recursive: true })
  writeFileSync(join(INSTALLED, 'package.json'), JSON.stringify({ private: true, dependencies: { n8n: VERSION } }))
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps', '--loglevel=error']
  const { status } = spawnSync('npm', ['install', ...options], { cwd: INSTALLED, stdio: 'inherit' })
  if (status !== 0) throw new Error('n8n could not be installed.')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** n8n on the database. The test makes the internal calls that n8n's editor makes. */
class N8n {
  readonly url: string
  readonly #env: Record<string, string>
  #process: ChildProcess | null = null
  #cookie = ''
  #output = ''

  constructor(home: string, port: number, database: URL) {
    this.url = `http://127.0.0.1:${port}`
    this.#env = {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      N8N_USER_FOLDER: home,
      N8N_LISTEN_ADDRESS: '127.0.0.1',
      N8N_PORT: String(port),
      WEBHOOK_URL: `${this.url}/`,
      N8N_ENCRYPTION_KEY: 'a key for tests, which is long enough',
      N8N_CUSTOM_EXTENSIONS: PACKAGE,
      N8N_SECURE_COOKIE: 'false',
      N8N_DIAGNOSTICS_ENABLED: 'false',
      N8N_VERSION_NOTIFICATIONS_ENABLED: 'false',
      N8N_TEMPLATES_ENABLED: 'false',
      N8N_COMMUNITY_PACKAGES_ENABLED: 'false',
      DB_TYPE: 'postgresdb',
      DB_POSTGRESDB_HOST: database.hostname,
      DB_POSTGRESDB_PORT: database.port,
      DB_POSTGRESDB_DATABASE: database.pathname.slice(1),
      DB_POSTGRESDB_USER: database.username,
    }
  }

  get output(): string {
    return this.#output
  }

  async start(): Promise<void> {
    const program = join(INSTALLED, 'node_modules/n8n/bin/n8n')
    // A group of its own, so that the processes that it starts end with it.
    const child = spawn(process.execPath, [program, 'start'], { env: this.#env, stdio: 'pipe', detached: true })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', text => {
        this.#output += text
      })
    this.#process = child
    const isReady = () =>
      fetch(`${this.url}/healthz/readiness`).then(
        ({ ok }) => ok,
        () => false,
      )
    await until('n8n to be ready', isReady, START_WITHIN_MS)
  }

  async kill(): Promise<void> {
    const child = this.#process
    if (child?.pid === undefined) return
    this.#process = null
    const exited = once(child, 'exit')
    process.kill(-child.pid, 'SIGKILL')
    await exited
  }

  async call<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', cookie: this.#cookie, 'browser-id': 'tests' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const cookies = response.headers.getSetCookie().map(cookie => cookie.split(';')[0])
    if (cookies.length > 0) this.#cookie = cookies.join('; ')
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 300)}`)
    return text === '' ? (undefined as T) : (JSON.parse(text) as T)
  }
}

function workflow(name: string, trigger: object, credentials: object) {
  const send = { id: 'send', name: 'Send', type: 'CUSTOM.pombal', typeVersion: 1, position: [300, 0], credentials }
  const parameters = { operation: 'sendText', to: ANSWERED, text: `={{ "${name}: " + $json.data.text }}` }
  return {
    name,
    active: false,
    settings: { executionOrder: 'v1' },
    nodes: [
      { id: `${name}-1`, name: 'Trigger', typeVersion: 1, position: [0, 0], credentials, ...trigger },
      { ...send, parameters },
    ],
    connections: { Trigger: { main: [[{ node: 'Send', type: 'main', index: 0 }]] } },
  }
}

async function runWorkflows(n8n: N8n, service: Service): Promise<void> {
  const { id, token } = await service.admin.createConnected()
  await until(
    'the editor’s calls',
    () =>
      n8n.call('POST', '/rest/owner/setup', OWNER).then(
        () => true,
        () => false,
      ),
    RUN_WITHIN_MS,
  )
  const types = await n8n.call<{ name: string }[]>('GET', '/types/nodes.json')
  const ours = types.map(({ name }) => name).filter(name => name.startsWith('CUSTOM.pombal'))
  check(
    'n8n loads the three nodes',
    ['pombal', 'pombalTrigger', 'pombalWebhookTrigger'].every(name => ours.includes(`CUSTOM.${name}`)),
    ours,
  )
  const credential = { name: 'Pombal', type: 'pombalApi', data: { baseUrl: service.url, token } }
  const { data: stored } = await n8n.call<{ data: { id: string } }>('POST', '/rest/credentials', credential)
  const credentials = { pombalApi: { id: stored.id, name: 'Pombal' } }
  const parameters = { events: ['message.received'] }
  const flows: Record<string, string> = {}
  for (const [name, trigger] of [
    ['feed', { type: 'CUSTOM.pombalTrigger', parameters: { ...parameters, startWith: 'latest' } }],
    ['hook', { type: 'CUSTOM.pombalWebhookTrigger', webhookId: WEBHOOK_ID, parameters }],
  ] as const) {
    const { data } = await n8n.call<{ data: { id: string; versionId: string } }>(
      'POST',
      '/rest/workflows',
      workflow(name, trigger, credentials),
    )
    await n8n.call('POST', `/rest/workflows/${data.id}/activate`, { versionId: data.versionId })
    flows[name] = data.id
  }
  const own = async <T>(path: string) => {
    const response = await fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${token}` } })
    return ((await response.json()) as { data: T[] }).data
  }
  const answers = async () =>
    (await own<{ text: string }>('/v1/messages?direction=out&limit=100')).map(({ text }) => text).sort()
  const untilAnswered = (word: string) =>
    until(
      `the answers to ${word}`,
      async () => {
        const texts = await answers()
        return ['feed', 'hook'].every(name => texts.includes(`${name}: ${word}`))
      },
      RUN_WITHIN_MS,
    )

  await service.admin.writeAsContact(id, { from: CONTACT, text: 'WORD-ONE' })
  await untilAnswered('WORD-ONE')
  say('✓ a message starts a workflow by the feed and one by webhook, and both send a text')
  await n8n.kill()
  await service.admin.writeAsContact(id, { from: CONTACT, text: 'WORD-TWO' })
  await n8n.start()
  await untilAnswered('WORD-TWO')
  say('✓ a message that came while n8n was killed starts both after its start')
  await service.admin.writeAsContact(id, { from: CONTACT, text: 'WORD-THREE' })
  await untilAnswered('WORD-THREE')
  const texts = await answers()
  check('each message was answered once by each workflow', texts.length === 6, texts)
  const forged = await fetch(`${n8n.url}/webhook/${WEBHOOK_ID}/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ event: 'message.received', data: { text: 'FORGED' } }),
  })
  check('a request without a signature is refused', forged.status === 401, forged.status)
  await n8n.call('POST', `/rest/workflows/${flows['hook']}/deactivate`)
  const urls = (await own<{ url: string | null }>(`/v1/webhooks/${id}/endpoints`)).map(({ url }) => url)
  check('the endpoint is deleted with its workflow', !urls.some(url => url?.startsWith(n8n.url)), urls)
}

install()
const home = mkdtempSync(join(tmpdir(), 'pombal-n8n-home-'))
await using resources = new AsyncDisposableStack()
resources.defer(() => rmSync(home, { recursive: true, force: true }))
const postgres = await startPostgres()
resources.defer(() => postgres.stop())
const service = await startService()
resources.defer(() => service.dispose())
const n8n = new N8n(home, await freePort(), new URL(await postgres.createDatabase()))
resources.defer(() => n8n.kill())
say('n8n starts')
await n8n.start()
try {
  await runWorkflows(n8n, service)
} catch (error) {
  console.error(n8n.output.slice(-5_000))
  throw error
}
