import { execFileSync, spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** The number of calls. While the service is not ready, each call probes the store again. */
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

async function metric(name: string): Promise<string | undefined> {
  const authorization = `Bearer ${service.adminKey}`
  const text = await (await fetch(`${service.url}/metrics`, { headers: { authorization } })).text()
  return text
    .split('\n')
    .find(line => line.startsWith(`${name} `))
    ?.slice(name.length + 1)
}

const storeUp = () => metric('pombal_store_up')

/** Expects that the service stays not ready, however often it is asked. */
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

/** A small disk of its own; null if this process may not mount one. */
function mountDisk(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null
  const folder = mkdtempSync(join(tmpdir(), 'pombal-disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'pombal-test', folder])
  onTestFinished(() => {
    if (status === 0) spawnSync('umount', ['--lazy', folder])
    rmSync(folder, { recursive: true, force: true })
  })
  return status === 0 ? folder : null
}

/** Writes to a file until the disk has no room. */
async function fill(path: string): Promise<void> {
  const file = createWriteStream(path)
  const error = new Promise<NodeJS.ErrnoException>(resolve => file.once('error', resolve))
  file.write(Buffer.alloc(32 * 1024 * 1024))
  expect((await error).code).toBe('ENOSPC')
}

test('a service whose disk is full reports this for as long as the disk is full', async context => {
  const dataDir = mountDisk()
  if (dataDir === null) return context.skip('Only root may mount a disk, on Linux.')
  service = await new Service({ dataDir }).start()
  await expectReadyAgain()
  const filling = join(dataDir, 'filling')
  await fill(filling)
  expect(statfsSync(dataDir).bavail).toBe(0)
  await expectNotReadyThroughout()
  await until('the metrics to show no free space', async () => (await metric('pombal_disk_bytes{kind="free"}')) === '0')
  rmSync(filling)
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
