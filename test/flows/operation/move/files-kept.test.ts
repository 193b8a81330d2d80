/** A backup and a move to PostgreSQL, of an instance with files: stored, queued, and still to be fetched. */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, inject, test } from 'vitest'
import { createDatabase } from '../../../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../../linked-harness.ts'
import { Service } from '../../../service.ts'
import { until } from '../../../until.ts'
import { FileHost } from '../../media/file-host.ts'
import { MediaClient, sha256 } from '../../media/harness.ts'
import { eventsOf, newContact, sendFrom, untilSettled } from '../../media/receiving-harness.ts'
import { sampleFile } from '../../media/sample-files.ts'
import { runMove } from './run-move.ts'

const PROGRAM = join(import.meta.dirname, '../../../../bin/pombal.js')
const BUSY = 503

let folder: string
let host: FileHost
let harness: LinkedHarness
let number: LinkedNumber
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pombal-files-kept-'))
  host = await FileHost.listen()
  harness = await LinkedHarness.open('sqlite', { env: { MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${host.port}` } })
  number = await harness.link()
})
afterEach(async () => {
  await harness?.[Symbol.asyncDispose]()
  await host?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** Stores an uploaded and a received file. A second received file and the files of two messages are still pending. */
async function fillInstance() {
  const { network } = harness
  const client = new MediaClient(harness.service.url!, number.instance)
  const uploaded = sampleFile('image', 80_000).bytes
  const media: string = (await client.upload(uploaded)).body.data.id
  const received = await sendFrom(harness, number, newContact(), 'document')
  const [event] = await untilSettled(harness, number, received.id)

  await network.misbehave({ kind: 'rule', rule: { when: { stanza: 'download' }, do: { error: '500' } } })
  await network.misbehave({ kind: 'rule', rule: { when: { stanza: 'upload' }, do: { error: '500' } } })
  const pending = await sendFrom(harness, number, newContact(), 'video')
  const [pendingEvent] = await until('the pending file', async () => {
    const events = await eventsOf(harness, number, pending.id)
    return events.length > 0 && events
  })
  const [to, other] = [newContact(), newContact()]
  const { id: queued } = await number.instance.sendMedia({ to, media }, 'queued')
  const fetched = sampleFile('document', 50_000).bytes
  const url = host.serve('/late.pdf', response => void response.writeHead(BUSY).end())
  const { id: fromUrl } = await number.instance.sendMedia({ to: other, media: { url } }, 'from-url')
  await until('a fetch', () => host.requestsOf('/late.pdf') > 0)
  return {
    files: [
      [media, sha256(uploaded)],
      [event!.data.media.id, received.hash],
    ] as const,
    pending: [pendingEvent!.data.media.id, pending.hash] as const,
    messages: [
      { id: queued, to, hash: sha256(uploaded) },
      { id: fromUrl, to: other, hash: sha256(fetched) },
    ],
    async release() {
      await network.misbehave({ kind: 'clear' })
      host.file('/late.pdf', fetched)
    },
  }
}

/** Expects that this service has every file and continues everything that was pending. */
async function expectAll(service: Service, filled: Awaited<ReturnType<typeof fillInstance>>): Promise<void> {
  await service.admin.untilState(number.id, 'connected')
  const client = new MediaClient(service.url!, number.instance)
  for (const [id, hash] of filled.files) expect(sha256((await client.download(id)).bytes)).toBe(hash)
  expect(await client.codeOf('GET', filled.pending[0])).toBe('media_pending')
  await filled.release()
  const { token } = number.instance
  const instance = service.instance(number.id, token)
  for (const { id, to, hash } of filled.messages) {
    await until(`${id} to be read`, async () => (await instance.message(id)).status === 'read')
    expect((await harness.network.inbox(to)).map(({ media }) => media?.sha256)).toEqual([hash])
  }
  const [id, hash] = filled.pending
  await until('the pending file', async () => (await client.call('HEAD', id)).status === 200)
  expect(sha256((await client.download(id)).bytes)).toBe(hash)
}

const run = (command: string, path: string) =>
  promisify(execFile)(process.execPath, [PROGRAM, command, path], {
    env: { PATH: process.env['PATH'], DATA_DIR: harness.service.dataDir },
  })

test(
  'a backup, and a copy of the folder after it, restore every file, and what was under way goes on',
  async () => {
    const { service } = harness
    const media = join(service.dataDir, 'media')
    const filled = await fillInstance()
    const client = new MediaClient(service.url!, number.instance)
    const bytes = sampleFile('document', 3_000).bytes
    const erased: string = (await client.upload(bytes)).body.data.id
    await run('backup', folder)
    expect((await client.call('DELETE', erased)).status).toBe(204)
    const later: string = (await client.upload(sampleFile('document', 3_000).bytes)).body.data.id
    const isRemoved = async () =>
      (await harness.database.read("select id from media_files where state = 'removing'", service.dataDir)).length === 0
    await until('the erased file to be removed', isRemoved)
    cpSync(media, join(folder, 'media'), { recursive: true })

    await service.kill('SIGTERM')
    rmSync(media, { recursive: true })
    const [file] = readdirSync(folder).filter(name => name.endsWith('.db'))
    await run('restore', join(folder, file!))
    cpSync(join(folder, 'media'), media, { recursive: true })
    await service.start()
    await expectAll(service, filled)

    const after = new MediaClient(service.url!, number.instance)
    expect(await after.codeOf('GET', later)).toBe('media_not_found')
    expect(await after.codeOf('GET', erased)).toBe('media_gone')
    expect((await after.upload(bytes)).body.data.id).toBe(erased)
    expect((await after.download(erased)).bytes.equals(bytes)).toBe(true)
  },
  LONG_TEST_WITHIN_MS,
)

test(
  'a move to PostgreSQL keeps every file where it is, and what was under way goes on',
  async () => {
    const target = await createDatabase('postgres', inject('postgresUrl'))
    const { service, network } = harness
    const { dataDir } = service
    const filled = await fillInstance()
    const { adminKey } = service
    await service.kill('SIGKILL')
    const settings = {
      ...target.env,
      DATA_DIR: dataDir,
      MASTER_KEY: readFileSync(join(dataDir, 'master.key'), 'utf8').trim(),
      ADMIN_KEY: adminKey,
    }
    const { code, output } = await runMove(settings)
    expect(code, output).toBe(0)
    const [, place = ''] = /set MEDIA_URL=(\S+)\.\n/.exec(output) ?? []
    const env = { ...settings, MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${host.port}`, WHATSAPP_URL: network.url }
    const without = new Service({ dataDir, env })
    without.boot()
    await without.exited()
    expect(without.output).toContain('MEDIA_URL is not set')
    const moved = await new Service({ dataDir, env: { ...env, MEDIA_URL: place } }).start()
    try {
      await expectAll(moved, filled)
    } finally {
      await moved.dispose()
      await target.dispose()
    }
  },
  LONG_TEST_WITHIN_MS,
)
