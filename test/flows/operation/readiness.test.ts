import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, inject, test } from 'vitest'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** Each probes the store again while it is not ready. */
const LOOKS = 30

let service: Service
let database: TestDatabase | undefined

afterEach(async () => {
  await service.dispose()
  await database?.dispose()
  database = undefined
})

async function readyStatus(): Promise<number> {
  const answer = await fetch(`${service.url}/readyz`)
  await answer.text()
  return answer.status
}

async function storeUp(): Promise<string | undefined> {
  const authorization = `Bearer ${service.adminKey}`
  const text = await (await fetch(`${service.url}/metrics`, { headers: { authorization } })).text()
  return /^pombal_store_up (\d)$/m.exec(text)?.[1]
}

/** After a refusal it stays refused, because a probe frees no memory. */
async function expectNotReadyThroughout(): Promise<void> {
  await until('503', async () => (await readyStatus()) === 503)
  const answers: number[] = []
  for (let look = 0; look < LOOKS; look += 1) answers.push(await readyStatus())
  expect(answers).toEqual(answers.map(() => 503))
  await until('the metrics to say so', async () => (await storeUp()) === '0')
}

async function expectReadyAgain(): Promise<void> {
  await until('200', async () => (await readyStatus()) === 200)
  await until('the metrics to say so', async () => (await storeUp()) === '1')
}

/** Makes the system refuse writes beyond `bytes` of a file, like a full disk. With 0 it refuses every write. */
function limitFiles(bytes: number | 'unlimited'): void {
  execFileSync('prlimit', [`--pid=${service.pid}`, `--fsize=${bytes}:unlimited`])
}

test.skipIf(process.platform !== 'linux').each([
  ['is full', (log: number) => log],
  ['has room for a few pages', (log: number) => log + 20_000],
  ['has become read-only', () => 0],
])('a service without callers is not ready while its disk %s, and ready afterwards', async (_, bytes) => {
  service = await new Service().start()
  await expectReadyAgain()
  limitFiles(bytes(statSync(join(service.dataDir, 'pombal.db-wal')).size))
  await expectNotReadyThroughout()
  limitFiles('unlimited')
  await expectReadyAgain()
})

test('a node is not ready while its PostgreSQL is read-only, and ready afterwards', async () => {
  const postgres = await createDatabase('postgres', inject('postgresUrl'))
  database = postgres
  service = await new Service({ env: postgres.env }).start()
  await expectReadyAgain()
  const name = new URL(postgres.url ?? '').pathname.slice(1)
  const setReadOnly = async (value: 'on' | 'off') => {
    await queryPostgres(inject('postgresUrl'), `alter database ${name} set default_transaction_read_only = ${value}`)
    await queryPostgres(
      inject('postgresUrl'),
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    )
  }
  await setReadOnly('on')
  await expectNotReadyThroughout()
  await setReadOnly('off')
  await expectReadyAgain()
})
