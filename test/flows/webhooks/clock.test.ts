import { join } from 'node:path'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, type StoreKind, type TestDatabase } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { TEST_WITHIN_MS } from '../../deadlines.ts'
import { createReceiver, type Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** The wall clock of a service is set while a retry waits. */

const DELAY_MS = 4_000
const TEN_MINUTES_MS = 600_000
/** Longer than a lease of 15 s. */
const PAUSED_MS = 20_000
const CLOCK = `--import=${join(import.meta.dirname, '../../faults/shifted-clock.ts')}`

interface Failed {
  service: Service
  receiver: Receiver
  database: TestDatabase
  id: string
}

/** Lets the first attempt of an event fail, so its retry waits. */
async function failOnce(kind: StoreKind, shiftsMs: string): Promise<Failed> {
  const database = await createDatabase(kind, inject('postgresUrl'))
  onTestFinished(() => database.dispose())
  const env = { ...database.env, SANDBOX: 'on', WEBHOOK_RETRY_DELAYS_MS: `${DELAY_MS}`, CLOCK_SHIFTS_MS: shiftsMs }
  const service = await new Service({ env, nodeOptions: [CLOCK] }).start()
  onTestFinished(() => service.dispose())
  const receiver = await createReceiver()
  onTestFinished(() => receiver.close())
  receiver.answerWith({ kind: 'status', status: 500 })
  const { id, token } = await service.admin.createConnected()
  await service.instance(id, token).setWebhook(receiver.url)
  if (database.url) await leaseRenewed(database.url)
  await service.admin.writeAsContact(id, { from: '5511987650001', text: 'hello' })
  await receiver.waitFor(({ length }) => length === 1)
  return { service, receiver, database, id }
}

/** Waits for a renewal: by the monotonic clock the lease is valid for 10 s, longer than a retry waits. */
async function leaseRenewed(url: string): Promise<void> {
  const read = async () =>
    (await queryPostgres<{ at: string }>(url, 'select max(lease_until) as at from leases'))[0]?.at
  const before = await read()
  await until('a renewal', async () => (await read()) !== before)
}

test.each(ONE_STORE.flatMap(kind => [-TEN_MINUTES_MS, TEN_MINUTES_MS].map(shiftMs => ({ kind, shiftMs }))))(
  'a retry keeps its due time when the clock is set by $shiftMs ms, on $kind',
  async ({ kind, shiftMs }) => {
    const { service, receiver } = await failOnce(kind, `0,${shiftMs}`)
    service.signal('SIGUSR2')
    await receiver.waitFor(2)
    const [first, second] = receiver.requests
    expect(second!.receivedAt - first!.receivedAt).toBeGreaterThanOrEqual(DELAY_MS)
  },
  TEST_WITHIN_MS,
)

test(
  'a node that was paused together with its monotonic clock posts nothing before it notices that it lost its lease',
  async () => {
    const { service, receiver, database, id } = await failOnce('postgres', `0,${PAUSED_MS}`)
    // Another node takes over, while neither the monotonic clock nor any timer of this node moves. Until the commit,
    // this node can neither renew its lease nor notice that it lost it.
    const another = new pg.Client(database.url!)
    await another.connect()
    onTestFinished(() => another.end())
    await another.query('begin')
    await another.query(`update leases set owner = 'another', epoch = epoch + 1 where instance_id = $1`, [id])
    service.signal('SIGUSR2')
    await until('the retry', () => service.output.includes('lane.paused') || receiver.requests.length > 1)
    expect(receiver.requests).toHaveLength(1)
    await another.query('commit')
    const headers = { authorization: `Bearer ${service.adminKey}` }
    const metrics = async () => (await fetch(`${service.url}/metrics`, { headers })).text()
    await until('the node to stop the instance', async () => (await metrics()).includes('pombal_instances_owned 0'))
    expect(receiver.requests).toHaveLength(1)

    await database.run(`update leases set owner = null, lease_until = 0 where instance_id = '${id}'`, '')
    await receiver.waitFor(2)
    expect(receiver.requests[1]?.headers['webhook-id']).toBe(receiver.requests[0]?.headers['webhook-id'])
  },
  TEST_WITHIN_MS,
)

test(
  'a clock that is set back before a restart does not delay a retry',
  async () => {
    const { service, receiver } = await failOnce('sqlite', `${TEN_MINUTES_MS}`)
    await service.kill('SIGTERM')
    const later = new Service({ dataDir: service.dataDir, env: { WEBHOOK_RETRY_DELAYS_MS: '600000' } })
    onTestFinished(() => later.dispose())
    await later.start()
    await receiver.waitFor(2)
  },
  TEST_WITHIN_MS,
)
