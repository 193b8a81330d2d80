import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../databases/database.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'
import { filesIn, MediaClient, png } from './harness.ts'
import { S3Server } from './s3-server.ts'

const MIB = 1_048_576
const DAY_MS = 86_400_000

async function start(env: Record<string, string>): Promise<{ service: Service; client: MediaClient }> {
  const service = new Service({ env })
  onTestFinished(() => service.dispose())
  await service.start()
  return { service, client: new MediaClient(service.url!, await service.admin.createInstance('whatsapp')) }
}

test('without settings, files are kept in the data folder', async () => {
  const { service, client } = await start({})
  await client.upload(png(1_000))
  expect(filesIn(join(service.dataDir, 'media'))).toHaveLength(1)
})

test('MEDIA_URL is the folder of the files', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pombal media '))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { client } = await start({ MEDIA_URL: pathToFileURL(folder).href })
  await client.upload(png(1_000))
  expect(filesIn(folder)).toHaveLength(1)
})

test('while the folder of stored files is not mounted, calls get 503; a copy of it can take its place', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'pombal-mount-'))
  onTestFinished(() => rmSync(parent, { recursive: true }))
  const [folder, mounted] = [join(parent, 'media'), join(parent, 'mounted')]
  const { service, client } = await start({ MEDIA_URL: pathToFileURL(folder).href })
  const { id } = (await client.upload(png(1_000))).body.data
  await service.kill('SIGTERM')
  renameSync(folder, mounted)
  mkdirSync(folder)
  await service.start()
  const again = new MediaClient(service.url!, client)
  const statuses = async () => [(await again.upload(png(2_000))).status, (await again.download(id)).status]
  expect(await statuses()).toEqual([503, 503])
  expect(filesIn(folder)).toEqual([])
  expect(existsSync(join(folder, 'folder.id'))).toBe(false)
  const [report] = service.logLines.filter(({ msg }) => msg === 'media.storage_unusable')
  const expected = readFileSync(join(mounted, 'folder.id'), 'utf8')
  expect(report).toMatchObject({ err: { message: expect.stringContaining(`folder.id is not ${expected}`) } })
  // What docs/operations.md describes for another folder with the files.
  writeFileSync(join(folder, 'folder.id'), `${expected}\n`)
  expect(await statuses()).toEqual([201, 410])
  rmSync(folder, { recursive: true })
  renameSync(mounted, folder)
  expect(await statuses()).toEqual([201, 200])
})

test('MEDIA_URL is the bucket of the files', async () => {
  const server = await new S3Server().listen()
  onTestFinished(() => server.close())
  const { client } = await start({
    MEDIA_URL: `s3://media/pombal?endpoint=${server.url}&region=eu-west-1`,
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'secret',
  })
  const bytes = png(7_000_000)
  const { id } = (await client.upload(bytes)).body.data
  expect([...server.objects.keys()]).toEqual([expect.stringMatching(/^media\/pombal\/inst_\w+\/file_\w+$/)])
  expect((await client.download(id)).bytes.equals(bytes)).toBe(true)
  expect((await client.call('DELETE', id)).status).toBe(204)
  await until('the object to be removed', () => server.objects.size === 0)

  server.fails = request => !request.startsWith('GET')
  expect((await client.upload(png(1_000))).body.error.code).toBe('service_unavailable')
  server.fails = () => false
  expect((await client.upload(png(1_000))).status).toBe(201)
})

test('nodes do not start without MEDIA_URL while there are files', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-media-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { env, dispose } = await createDatabase('postgres', inject('postgresUrl'))
  onTestFinished(dispose)
  const { service, client } = await start({ ...env, MEDIA_URL: pathToFileURL(folder).href })
  expect((await client.upload(png(1_000))).status).toBe(201)
  await service.kill('SIGTERM')
  const without = new Service({ dataDir: service.dataDir, env })
  onTestFinished(() => without.dispose())
  without.boot()
  expect((await without.exited()).code).toBe(1)
  expect(without.output).toContain('Files are stored, but MEDIA_URL is not set. Set it to where the files are')
})

test('MEDIA_QUOTA_MB limits what an instance stores, MEDIA_MB_PER_MINUTE what it transfers', async () => {
  const { client } = await start({ MEDIA_QUOTA_MB: '2', MEDIA_MB_PER_MINUTE: '1' })
  const startedAt = performance.now()
  const first = await client.upload(png(1.5 * MIB))
  expect(first.status).toBe(201)
  const busy = await client.upload(png(100))
  expect([busy.status, busy.body.error.code]).toEqual([429, 'too_many_transfers'])
  // The minute begins with the first upload.
  const passedSeconds = (performance.now() - startedAt) / 1_000
  expect(Number(busy.headers.get('retry-after'))).toBeGreaterThan(60 - passedSeconds)
  expect((await client.download(first.body.data.id)).status).toBe(429)
  const { client: other } = await start({ MEDIA_QUOTA_MB: '2' })
  await other.upload(png(1.5 * MIB))
  const full = await other.upload(png(MIB))
  expect([full.status, full.body.error.code]).toEqual([413, 'media_quota_exceeded'])
})

test('MEDIA_RETENTION_DAYS is how long files are kept', async () => {
  const keptMs = 3_000
  const { service, client } = await start({ MEDIA_RETENTION_DAYS: (keptMs / DAY_MS).toFixed(8) })
  const earliest = Date.now() + keptMs
  const { id, expiresAt } = (await client.upload(png(1_000))).body.data
  // The setting in days is rounded to a millisecond.
  expect(Date.parse(expiresAt)).toBeGreaterThanOrEqual(earliest - 1)
  expect(Date.parse(expiresAt)).toBeLessThanOrEqual(Date.now() + keptMs + 1)
  await until('the file to go', async () => (await client.call('HEAD', id)).status === 410)
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt))
  await until('its bytes to go', () => filesIn(join(service.dataDir, 'media')).length === 0)
})

test('a storage that cannot be used is reported at the start, and used once it can be', async () => {
  const server = await new S3Server().listen()
  onTestFinished(() => server.close())
  server.isAway = true
  const { service, client } = await start({
    MEDIA_URL: `s3://media/pombal?endpoint=${server.url}&region=eu-west-1`,
    AWS_ACCESS_KEY_ID: 'key',
    AWS_SECRET_ACCESS_KEY: 'secret',
  })
  const reports = () => service.logLines.filter(({ msg }) => msg === 'media.storage_unusable')
  const [report] = await until('the report', () => reports().length > 0 && reports())
  expect(report).toMatchObject({ kind: 'bucket', bucket: 'media', endpoint: server.url })
  const refused = await client.upload(png(1_000))
  expect([refused.status, refused.body.error.code]).toEqual([503, 'service_unavailable'])
  server.isAway = false
  expect((await client.upload(png(1_000))).status).toBe(201)

  const file = join(service.dataDir, 'no folder')
  writeFileSync(file, '')
  const other = await start({ MEDIA_URL: pathToFileURL(join(file, 'media')).href })
  await until('the report', () => other.service.logLines.some(({ msg }) => msg === 'media.storage_unusable'))
  expect((await other.client.upload(png(1_000))).status).toBe(503)
  await service.restart()
  expect(reports()).toHaveLength(1)
})
