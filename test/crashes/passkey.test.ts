import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Order } from '@pombal/simulator'
import { expect, onTestFinished, test } from 'vitest'
import type { PasskeyRequest } from '../../src/domain/connection/passkey.ts'
import { STORES, type TestDatabase } from '../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { noteBody } from '../logs/log-capture.ts'
import { TestPasskey } from '../passkey.ts'
import { until } from '../until.ts'

type Reached = 'asked' | 'answered' | 'held' | 'code' | 'confirmed'

interface Moment {
  /** The kill comes once this is reached: `answered` and `confirmed` right after the 202. */
  at: Reached
  /** What the network does differently. */
  orders?: Order[]
}

/** Our queries to WhatsApp during a ceremony, and its query that the phone has confirmed. */
const hold = (direction: 'in' | 'out', nth: number): Order => ({
  kind: 'rule',
  rule: {
    when: { stanza: 'iq', direction, attrs: { type: 'set', ...(direction === 'in' && { xmlns: 'md' }) }, nth },
    do: 'hold',
  },
})
const REFUSED: Order = { kind: 'play_passkey', how: 'refused', count: 1 }

const MOMENTS: [when: string, moment: Moment][] = [
  ['WhatsApp has asked', { at: 'asked' }],
  ['the answer is stored', { at: 'answered' }],
  ['the answer is on its way to WhatsApp', { at: 'held', orders: [hold('in', 1)] }],
  ['our nonce is on its way to WhatsApp', { at: 'held', orders: [hold('in', 2)] }],
  ['our keys are on their way to the phone', { at: 'held', orders: [hold('in', 3)] }],
  ['the confirmation of the phone is on its way to us', { at: 'held', orders: [hold('out', 1)] }],
  ['a code is to be compared', { at: 'code', orders: [REFUSED] }],
  ['the confirmation of the code is stored', { at: 'confirmed', orders: [REFUSED] }],
]

let numbers = 5511912350100

/** An instance, and the phone that links it with its passkey. */
class Ceremony {
  readonly passkey = new TestPasskey()
  /** What no log, file or row may contain: everything that the passkey answered, and the codes that were compared. */
  readonly secrets: string[] = []
  readonly #harness: LinkedHarness
  readonly #phone = String(numbers++)
  readonly id: string
  /** WhatsApp's latest request. Right after a kill it is still on show. */
  #request: PasskeyRequest | null = null

  constructor(harness: LinkedHarness, id: string) {
    this.#harness = harness
    this.id = id
  }

  get #admin() {
    return this.#harness.service.admin
  }

  /** Links the number as far as this. @param orders take effect when WhatsApp has asked */
  async run(until_: Reached | 'linked', orders: Order[] = []): Promise<void> {
    const first = await this.#scan()
    for (const order of orders) await this.#harness.network.misbehave(order)
    if (until_ === 'asked') return
    await this.#answer(first)
    if (until_ === 'answered') return
    if (until_ === 'held') return this.#untilHeld()
    let code: string | null = null
    if (orders.includes(REFUSED)) {
      await this.#answer(await this.#asked())
      code = await until('a code', async () => (await this.#admin.connection(this.id)).passkey?.code)
      this.secrets.push(code)
    }
    if (until_ === 'code') return
    if (code !== null) await this.#post('/confirm')
    if (until_ === 'linked') await this.#admin.untilState(this.id, 'connected')
  }

  /** The phone scans the code. Right after a kill that may be the code of a socket that is gone. */
  async #scan(): Promise<PasskeyRequest> {
    const { network } = this.#harness
    await network.openAccount(this.#phone)
    await network.misbehave({ kind: 'require_passkey', account: this.#phone, credential: this.passkey.credential })
    return this.#asked(qr => {
      // Answered when the number is linked.
      if (qr !== null) network.scanQr(qr, this.#phone).catch(() => undefined)
    })
  }

  async #asked(look: (qr: string | null) => void = () => undefined): Promise<PasskeyRequest> {
    const before = this.#request?.challenge
    this.#request = await until('WhatsApp to ask for the passkey', async () => {
      const { qr, passkey } = await this.#admin.connection(this.id)
      look(qr)
      return passkey?.request && passkey.request.challenge !== before && passkey.request
    })
    return this.#request
  }

  #untilHeld() {
    return until('the stanza', async () => (await this.#harness.network.scenario()).held.length > 0).then(
      () => undefined,
    )
  }

  async #answer(request: PasskeyRequest): Promise<void> {
    const assertion = this.passkey.answer(request)
    const { clientDataJSON, authenticatorData, signature } = assertion.response
    this.secrets.push(clientDataJSON, authenticatorData, signature)
    await this.#post('', { assertion })
  }

  async #post(path: string, body: object = {}): Promise<void> {
    noteBody(body)
    const { service } = this.#harness
    const answer = await fetch(`${service.url}/admin/v1/instances/${this.id}/connection/passkey${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect(answer.status).toBe(202)
  }
}

/** Everything that the store has kept, in every encoding that a value may have there. */
async function everythingStored(store: string, database: TestDatabase, dataDir: string): Promise<Buffer[]> {
  if (store === 'sqlite') {
    const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    return files.map(({ parentPath, name }) => readFileSync(join(parentPath, name)))
  }
  const tables = await database.read(
    "select table_name::text as name from information_schema.tables where table_schema = 'public'",
    '',
  )
  const rows = await Promise.all(tables.map(({ name }) => database.read(`select t::text as row from ${name} t`, '')))
  return rows.flat().map(({ row }) => Buffer.from(String(row)))
}

function encodingsOf(secret: string): Buffer[] {
  const [text, bytes] = [Buffer.from(secret), Buffer.from(secret, 'base64url')]
  return [
    text,
    ...(bytes.length >= 16 ? [bytes] : []),
    Buffer.from(text.toString('hex')),
    Buffer.from(bytes.toString('hex')),
  ]
}

async function traces(store: string, database: TestDatabase, dataDir: string, secrets: string[]): Promise<string[]> {
  const stored = await everythingStored(store, database, dataDir)
  return secrets.filter(secret => encodingsOf(secret).some(wanted => stored.some(text => text.includes(wanted))))
}

const answersLeft = async (database: TestDatabase, dataDir: string) =>
  (
    await database.read(
      'select instance_id from passkey_answers union select instance_id from connections where passkey is not null',
      dataDir,
    )
  ).length

test.each(STORES)(
  'on %s, a kill -9 at any step of a ceremony leaves nothing of it, and the number is linked by the next one',
  async store => {
    await using harness = await LinkedHarness.open(store, { env: { WHATSAPP_PASSKEY: 'on' } })
    const { service, network, database } = harness
    const secrets: string[] = []
    for (const [when, { at, orders = [] }] of MOMENTS) {
      const { id } = await service.admin.createInstance('whatsapp', when)
      const ceremony = new Ceremony(harness, id)
      await service.admin.connect(id)
      await ceremony.run(at, orders)
      await service.kill('SIGKILL')
      await database.expireLeases()
      // Not even the answer that nobody has read yet can be read.
      const answers = ceremony.secrets.filter(secret => secret.length > 8)
      expect(await traces(store, database, service.dataDir, answers), when).toEqual([])
      await network.misbehave({ kind: 'clear' })
      await service.start()
      await ceremony.run('linked')
      expect(await answersLeft(database, service.dataDir), when).toBe(0)
      secrets.push(...ceremony.secrets)
    }
    expect(secrets.length).toBeGreaterThan(3 * MOMENTS.length)
    expect(await answersLeft(database, service.dataDir)).toBe(0)
    await service.kill('SIGTERM')
    expect(await traces(store, database, service.dataDir, secrets)).toEqual([])
    for (const secret of secrets) expect(service.wholeOutput.includes(secret)).toBe(false)
  },
  LONG_TEST_WITHIN_MS,
)

test('a report that Node writes about the running process contains nothing of a ceremony', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-reports-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const NODE_OPTIONS = `--report-on-signal --report-signal=SIGUSR2 --report-directory=${folder}`
  await using harness = await LinkedHarness.open('sqlite', { env: { WHATSAPP_PASSKEY: 'on', NODE_OPTIONS } })
  const { service } = harness
  const { id } = await service.admin.createInstance('whatsapp', 'Reported')
  const ceremony = new Ceremony(harness, id)
  await service.admin.connect(id)
  // The answer is in the memory of the process.
  await ceremony.run('held', [hold('in', 1)])
  service.signal('SIGUSR2')
  const report = await until('the report', () => {
    const [name] = readdirSync(folder)
    const text = name === undefined ? '' : readFileSync(join(folder, name), 'utf8')
    return text.trimEnd().endsWith('}') && text
  })
  expect(JSON.parse(report).header.trigger).toBe('Signal')
  for (const secret of ceremony.secrets) expect(report).not.toContain(secret)
})
