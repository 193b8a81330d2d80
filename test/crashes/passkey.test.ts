import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Order } from '@pombal/simulator'
import { expect, onTestFinished, test } from 'vitest'
import type { TestDatabase } from '../databases/database.ts'
import { ONE_STORE } from '../databases/one-store.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { until } from '../until.ts'
import { Ceremony, hold, REFUSED, type Reached } from './passkey-ceremony.ts'

interface Moment {
  /** The kill comes once this is reached: `answered` and `confirmed` right after the 202. */
  at: Reached
  /** What the network does differently. */
  orders?: Order[]
}

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

test.each(ONE_STORE)(
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
      // Not even an answer that its owner has not read yet is stored in clear.
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

test("Node's report in the middle of a ceremony contains nothing of it, nor does its heap afterwards", async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-reports-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const NODE_OPTIONS = [
    `--report-on-signal --report-signal=SIGUSR2 --report-directory=${folder}`,
    `--heapsnapshot-signal=SIGIO --diagnostic-dir=${folder}`,
  ].join(' ')
  await using harness = await LinkedHarness.open('sqlite', { env: { WHATSAPP_PASSKEY: 'on', NODE_OPTIONS } })
  const { service } = harness
  const { id } = await service.admin.createInstance('whatsapp', 'Reported')
  const ceremony = new Ceremony(harness, id)
  await service.admin.connect(id)
  // The answer is in the memory of the process.
  await ceremony.run('held', [hold('in', 1)])
  service.signal('SIGUSR2')
  const written = (ending: string) =>
    until(`the file *${ending}`, () => {
      const name = readdirSync(folder).find(file => file.endsWith(ending))
      const text = name === undefined ? '' : readFileSync(join(folder, name), 'utf8')
      return text.trimEnd().endsWith('}') && text
    })
  const report = await written('.json')
  expect(JSON.parse(report).header.trigger).toBe('Signal')
  for (const secret of ceremony.secrets) expect(report).not.toContain(secret)

  await harness.network.misbehave({ kind: 'clear' })
  const { id: next } = await service.admin.createInstance('whatsapp', 'Written')
  const whole = new Ceremony(harness, next)
  await service.admin.connect(next)
  await whole.run('linked')
  service.signal('SIGIO')
  const heap = await written('.heapsnapshot')
  expect(heap.includes(next)).toBe(true)
  expect(whole.secrets.length).toBeGreaterThan(0)
  expect(whole.secrets.filter(secret => heap.includes(secret))).toEqual([])
})
