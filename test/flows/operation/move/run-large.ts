/**
 * `npm run test:move [-- --messages 1000000]`: moves a large SQLite database to PostgreSQL, and kills the move several times on the
 * way. Then the service starts on PostgreSQL: every instance connects by itself, and what was queued is sent once. Prints the figures
 * for docs/operations.md, and fails if anything is lost.
 */
import { strict as assert } from 'node:assert'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOptions } from '../../../../scripts/command-line.ts'
import { createDatabase, type TestDatabase } from '../../../databases/database.ts'
import { insertEvents } from '../../../databases/insert-events.ts'
import { startPostgres } from '../../../databases/postgres.ts'
import { type Network, startNetwork } from '../../../network.ts'
import { Service } from '../../../service.ts'
import { until } from '../../../until.ts'
import { runMove, startMove } from './run-move.ts'

const USAGE = 'usage: npm run test:move [-- --messages 1000000]'
const INSTANCES = 4
const QUEUED = 10
const CONTACT = '5511987654321'
const UNREACHABLE = 'ws://127.0.0.1:9'
const TEXT_LENGTH = 100
/** The move is killed when it has reported this much. */
const KILLED_AT_PERCENT = [10, 45, 80]
const START_WITHIN_MS = 300_000
/** For each instance: counts, and the number of the last event. */
const FIGURES = `select instance_id, count(*) as messages, count(distinct id) as ids, min(id) as first, max(id) as last
  from incoming_messages group by instance_id order by instance_id`
const EVENTS = `select instance_id, count(*) as events, max(seq) as last, sum(length(body)) as characters
  from events group by instance_id order by instance_id`

const { values } = readOptions(USAGE, { messages: { type: 'string', default: '1000000' } })
const messages = Number(values.messages)

interface Linked {
  id: string
  token: string
}

async function link(network: Network, service: Service): Promise<Linked> {
  const { id, token } = await service.admin.createInstance('whatsapp')
  await service.admin.connect(id)
  const qr = await until('a QR code', async () => (await service.admin.connection(id)).qr)
  await network.scanQr(qr)
  await service.admin.untilState(id, 'connected')
  return { id, token }
}

/** Instances with sessions, stored messages with their events, and messages that wait to be sent. */
async function fill(network: Network, source: TestDatabase, dataDir: string) {
  const linking = await new Service({ dataDir, env: { WHATSAPP_URL: network.url } }).start()
  const instances: Linked[] = []
  for (let index = 0; index < INSTANCES; index += 1) instances.push(await link(network, linking))
  await linking.kill('SIGTERM')
  for (const { id } of instances) {
    const rows = { count: Math.ceil(messages / INSTANCES), length: TEXT_LENGTH, form: 'new' } as const
    for (const statement of insertEvents('sqlite', id, rows)) await source.run(statement, dataDir)
  }
  const queueing = await new Service({ dataDir, env: { WHATSAPP_URL: UNREACHABLE } }).start()
  const queued = new Map<string, string[]>()
  for (const { id, token } of instances) {
    const ids: string[] = []
    for (let index = 0; index < QUEUED; index += 1)
      ids.push((await queueing.instance(id, token).send(CONTACT, `${id} ${index}`)).id)
    queued.set(id, ids)
  }
  await queueing.kill('SIGKILL')
  return { instances, queued }
}

/** Kills the move when it has reported this percentage. @returns the last line of its progress */
async function killAtPercent(percent: number, env: Record<string, string>): Promise<string> {
  let last = ''
  const move = startMove(env, text => {
    for (const line of text.split('\n')) {
      const reported = /^(\d+)%: /.exec(line)?.[1]
      if (reported === undefined) continue
      last = line
      if (Number(reported) >= percent) move.kill()
    }
  })
  const { code, output } = await move.ended
  assert.equal(code, null, `The move ended before ${percent}%:\n${output}`)
  return last
}

/** The instances connect without a scan, and send each queued message once. */
async function serve(network: Network, env: Record<string, string>, { instances, queued }: Filled): Promise<void> {
  const service = await new Service({ env: { ...env, WHATSAPP_URL: network.url } }).start()
  for (const { id } of instances) await service.admin.untilState(id, 'connected', START_WITHIN_MS)
  for (const { id, token } of instances)
    for (const message of queued.get(id) ?? [])
      await until('it to be read', async () => (await service.instance(id, token).message(message)).status === 'read')
  const inbox = await network.inbox(CONTACT)
  for (const { id } of instances) {
    const arrived = inbox.filter(({ text }) => text.startsWith(id)).map(({ text, copies }) => [text, copies])
    const expected = Array.from({ length: QUEUED }, (_, index) => [`${id} ${index}`, 1])
    assert.deepEqual(arrived, expected)
  }
  await service.dispose()
}

type Filled = Awaited<ReturnType<typeof fill>>

const asNumbers = (rows: Record<string, unknown>[]) =>
  rows.map(row => Object.entries(row).map(([name, value]) => [name, String(value)]))

const postgres = await startPostgres()
const network = await startNetwork()
const dataDir = mkdtempSync(join(tmpdir(), 'pombal-large-move-'))
try {
  const source = await createDatabase('sqlite', postgres.url)
  const target = await createDatabase('postgres', postgres.url)
  const filled = await fill(network, source, dataDir)
  const read = (file: string) => readFileSync(join(dataDir, file), 'utf8').trim()
  const env = { ...target.env, DATA_DIR: dataDir, MASTER_KEY: read('master.key'), ADMIN_KEY: read('admin.key') }
  const before = [asNumbers(await source.read(FIGURES, dataDir)), asNumbers(await source.read(EVENTS, dataDir))]
  const startedAt = performance.now()
  for (const percent of KILLED_AT_PERCENT) console.log(`killed: ${await killAtPercent(percent, env)}`)
  const last = await runMove(env)
  assert.equal(last.code, 0, last.output)
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  console.log(last.output.split('\n').find(line => line.startsWith('Moved ')))
  console.log(`${messages} messages: ${seconds} s with ${KILLED_AT_PERCENT.length} kills`)
  const after = [asNumbers(await target.read(FIGURES, dataDir)), asNumbers(await target.read(EVENTS, dataDir))]
  assert.deepEqual(after, before)
  await serve(network, env, filled)
  console.log(`${INSTANCES} instances connected by themselves, ${INSTANCES * QUEUED} queued messages sent once, 0 lost`)
} finally {
  rmSync(dataDir, { recursive: true, force: true })
  await network.close()
  await postgres.stop()
}
