import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, STORES, type StoreKind } from '../database.ts'
import { TEST_WITHIN_MS } from '../deadlines.ts'
import { createReceiver, type Receiver } from '../receiver.ts'
import { Service } from '../service.ts'

/** The wall clock of a service is set while a retry waits. */

const DELAY_MS = 4_000
const TEN_MINUTES_MS = 600_000
const CLOCK = `--import=${join(import.meta.dirname, '../faults/shifted-clock.ts')}`

async function failOnce(kind: StoreKind, shiftsMs: string): Promise<{ service: Service; receiver: Receiver }> {
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
  await service.admin.writeAsContact(id, { from: '5511987650001', text: 'hello' })
  await receiver.waitFor(({ length }) => length === 1)
  return { service, receiver }
}

test.each(STORES.flatMap(kind => [-TEN_MINUTES_MS, TEN_MINUTES_MS].map(shiftMs => ({ kind, shiftMs }))))(
  'a retry keeps its moment when the clock is set by $shiftMs ms, on $kind',
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
  'a retry does not wait longer where the clock was set back before a restart',
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
