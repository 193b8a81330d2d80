import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startPostgres } from '../../databases/postgres.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const DOCUMENT = readFileSync(join(import.meta.dirname, '../../../docs/backup.md'), 'utf8')
const CONTACT = '5511987654321'

/** The folder of an installed PostgreSQL, server and tools of one version; null if there is none. */
function findInstalled(): string | null {
  try {
    const folder = execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: 'pipe' }).trim()
    return ['postgres', 'initdb', 'pg_dump', 'pg_restore', 'createdb'].every(name => existsSync(join(folder, name)))
      ? folder
      : null
  } catch {
    return null
  }
}

/** The block of commands in docs/backup.md that begins with these words. */
function commandsFrom(firstWords: string): string {
  const block = DOCUMENT.split('```').find(text => text.startsWith(`\n${firstWords} `))
  if (block === undefined) throw new Error(`docs/backup.md has no commands that begin with ${firstWords}.`)
  return block
}

test('the commands of docs/backup.md save a PostgreSQL database while the service runs, and restore it', async context => {
  const binaries = findInstalled()
  if (binaries === null) return context.skip('No PostgreSQL with its tools is installed.')
  const server = await startPostgres({ binaries })
  const folder = mkdtempSync(join(tmpdir(), 'pombal-dump-'))
  const url = await server.createDatabase()
  const settings = { ADMIN_KEY: 'a'.repeat(32), MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), SANDBOX: 'on' }
  const services: Service[] = []
  onTestFinished(async () => {
    for (const service of services) await service.dispose()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const start = async (databaseUrl: string) => {
    const service = new Service({ env: { ...settings, DATABASE_URL: databaseUrl } })
    services.push(service)
    return service.start()
  }
  await queryPostgres(server.url, 'create role pombal login')
  const { hostname, port, username } = new URL(url)
  const env = {
    PATH: `${binaries}:${process.env['PATH']}`,
    DATABASE_URL: url,
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
  }
  const paste = (commands: string) => promisify(execFile)('sh', ['-e', '-c', commands], { cwd: folder, env })

  const service = await start(url)
  const { id, token } = await service.admin.createConnected()
  const { id: messageId } = await service.instance(id, token).send(CONTACT, 'before the backup')
  const isRead = async (of: Service) => (await of.instance(id, token).message(messageId)).status === 'read'
  await until('the message to be read', () => isRead(service))
  await paste(commandsFrom('(umask 077; pg_dump'))
  expect(statSync(join(folder, 'pombal.dump')).mode & 0o777).toBe(0o600)
  const { id: later } = await service.instance(id, token).send(CONTACT, 'after the backup')
  await service.kill('SIGTERM')
  await paste(commandsFrom('createdb'))
  const restoredUrl = Object.assign(new URL(url), { username: 'pombal', pathname: '/pombal_restored' })
  const restored = await start(restoredUrl.href)
  expect(await isRead(restored)).toBe(true)
  await expect(restored.instance(id, token).message(later)).rejects.toMatchObject({ status: 404 })
  await restored.admin.untilState(id, 'connected')
  // The command from docs/operations.md, for a move from SQLite.
  await paste('createdb --encoding=UTF8 --template=template0 pombal')
  const empty = await start(url.replace(/[^/]+$/, 'pombal'))
  expect(await empty.admin.createInstance()).toMatchObject({ id: expect.any(String) })
})
