import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { MessageView } from '../../api-client.ts'
import { createDatabase } from '../../databases/database.ts'
import { LoadHarness } from '../../rig/harness.ts'
import { newSeed } from '../../rig/random.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const ROOT = join(import.meta.dirname, '../../..')
const OWNER_ONLY = 0o600
const RWX = 0o777

describe('a backup', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-backups-'))
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  async function run(script: 'backup' | 'restore', path: string, dataDir: string) {
    const env = { PATH: process.env['PATH'], DATA_DIR: dataDir }
    return promisify(execFile)(process.execPath, [join(ROOT, 'bin/pombal.js'), script, path], { env }).then(
      ({ stdout }) => ({ code: 0, said: stdout }),
      ({ code, stderr }: { code: number; stderr: string }) => ({ code, said: stderr }),
    )
  }

  test('a backup made under load restores to a consistent database that starts, sends and reports', async () => {
    const database = await createDatabase('sqlite', inject('postgresUrl'))
    const harness = await LoadHarness.open({ database, instances: 1, seed: newSeed() })
    try {
      const { service } = harness
      harness.startLoad()
      await harness.untilRecovered()
      const before = harness.loads[0]!.accepted.map(({ messageId }) => messageId)
      const { said } = await run('backup', folder, service.dataDir)
      expect(said).toMatch(/contains neither the master key/)
      await harness.untilRecovered()
      await harness.stopLoad()
      await harness.untilQuiet()
      await service.kill('SIGTERM')
      const files = readdirSync(folder)
      expect(files).toEqual([expect.stringMatching(/^pombal-.*\.db$/)])
      const file = join(folder, files[0]!)
      expect(statSync(file).mode & RWX).toBe(OWNER_ONLY)
      expect((await run('restore', file, service.dataDir)).said).toMatch(/Restored. Start the service/)
      await service.start()
      const { client } = harness.linkedInstances[0]!
      await service.admin.untilState(client.id, 'connected')
      for (const id of before) expect(await client.message(id)).toMatchObject({ id })
      const listQueued = () => service.admin.listMessages(client.id, '?state=queued')
      await until('an empty queue', async () => (await listQueued()).length === 0)
      // Messages that were queued in the backup were sent again, under their WhatsApp IDs.
      for (const phone of new Set(harness.loads.flatMap(({ accepted }) => accepted.flatMap(({ phones }) => phones)))) {
        const texts = (await harness.network!.inbox(phone)).map(({ text }) => text)
        expect(new Set(texts).size).toBe(texts.length)
      }
      // The sessions have advanced since the backup. The restored instance asks for messages that it cannot decrypt.
      const known = harness.loads[0]!.accepted.findLast(({ to }) => to.startsWith('5511'))!
      const { id } = await client.send(known.to, 'after the restore')
      const read = await until('it to be read', async () => {
        const message: MessageView = await client.message(id)
        return message.status === 'read' && message
      })
      expect(read.error).toBeNull()
      const shown = await harness.network!.inbox(known.to)
      expect(shown.filter(({ text }) => text === 'after the restore')).toHaveLength(1)
    } finally {
      await harness.dispose()
      await database.dispose()
    }
  })

  test('a reader that is ahead of a restored feed gets 410 instead of missing new events whose numbers it has passed', async () => {
    const service = await new Service().start()
    try {
      const { id, token } = await service.admin.createConnected()
      const read = async (after: string) => {
        const response = await fetch(`${service.url}/v1/events?event=message.received&after=${after}`, {
          headers: { authorization: `Bearer ${token}` },
        })
        const body = (await response.json()) as { data: { body: { data: { text: string } } }[]; nextCursor: string }
        return { status: response.status, body }
      }
      const receive = async (text: string, after: string) => {
        await service.admin.writeAsContact(id, { from: '5511987654321', text })
        return until(text, async () => {
          const { body } = await read(after)
          return body.data.at(-1)?.body.data.text === text && body.nextCursor
        })
      }
      const kept = await receive('before the backup', '0')
      await run('backup', folder, service.dataDir)
      const undone = await receive('after the backup', kept)
      await service.kill('SIGTERM')
      await run('restore', join(folder, readdirSync(folder)[0]!), service.dataDir)
      await service.start()
      await service.admin.untilState(id, 'connected')
      for (const text of ['one', 'two', 'three']) await receive(text, kept)
      expect((await read(undone)).status).toBe(410)
      const { status, body } = await read(kept)
      expect([status, body.data.map(event => event.body.data.text)]).toEqual([200, ['one', 'two', 'three']])
    } finally {
      await service.dispose()
    }
  })

  test('several backups into one folder at the same time all succeed, even beside files left by a killed backup', async () => {
    const service = await new Service().start()
    try {
      const nextSeconds = Array.from({ length: 60 }, (_, second) => new Date(Date.now() + second * 1_000))
      const left = nextSeconds.map(at => `pombal-${at.toISOString().slice(0, 19).replaceAll(':', '-')}.db.partial`)
      for (const name of left) writeFileSync(join(folder, name), '')
      const runs = await Promise.all(Array.from({ length: 4 }, () => run('backup', folder, service.dataDir)))
      for (const { code, said } of runs) expect(code, said).toBe(0)
      const made = readdirSync(folder).filter(name => name.endsWith('.db'))
      expect(runs.map(({ said }) => said.slice(0, said.indexOf(','))).toSorted()).toEqual(
        made.map(name => join(folder, name)),
      )
      expect(readdirSync(folder)).toHaveLength(left.length + made.length)
    } finally {
      await service.dispose()
    }
  })

  test('erases files left by a backup that was killed at least 12 hours ago, and no other file', async () => {
    const service = await new Service().start()
    try {
      const kept = ['pombal-2026-01-02T03-04-05.db', 'pombal-2026-01-02T03-04-07.db.partial', 'mine.db.partial']
      const left = ['pombal-2026-01-02T03-04-06.db.partial', 'pombal-2026-01-02T03-04-06.db.partial-journal']
      for (const name of [...kept, ...left]) {
        writeFileSync(join(folder, name), '')
        const hoursAgo = name === kept[1] ? 11 : 13
        const at = new Date(Date.now() - hoursAgo * 3_600_000)
        utimesSync(join(folder, name), at, at)
      }
      const { said } = await run('backup', folder, service.dataDir)
      const made = basename(said.slice(0, said.indexOf(',')))
      expect(readdirSync(folder).toSorted()).toEqual([...kept, made].toSorted())
    } finally {
      await service.dispose()
    }
  })

  test('of a database that another program has locked is refused with a clear error message', async () => {
    const service = await new Service().start()
    await service.kill('SIGTERM')
    const other = new Sqlite(join(service.dataDir, 'pombal.db'))
    other.pragma('locking_mode = EXCLUSIVE')
    other.exec('begin exclusive')
    const refused = await run('backup', folder, service.dataDir)
    other.close()
    expect(refused).toMatchObject({
      code: 1,
      said: expect.stringMatching(/^No backup was made: .* is in use by another program/),
    })
    await service.dispose()
  })

  test('cannot replace a database that is in use, and is refused if it is damaged', async () => {
    const service = await new Service().start()
    try {
      await run('backup', folder, service.dataDir)
      const file = join(folder, readdirSync(folder)[0]!)
      const refused = await run('restore', file, service.dataDir)
      expect(refused).toMatchObject({ code: 1, said: expect.stringContaining('Another process uses') })
      await service.kill('SIGTERM')
      writeFileSync(file, 'no database at all')
      const damaged = await run('restore', file, service.dataDir)
      expect(damaged).toMatchObject({
        code: 1,
        said: expect.stringContaining('is damaged or is not an SQLite database'),
      })
      await service.start()
    } finally {
      await service.dispose()
    }
  })
})
