import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { startService } from '../../service.ts'

const CALLS = 60
/** Less than the 5 s that a write waits for a lock. The first call begins with that wait. */
const AT_ONCE_MS = 4_000

test('while another process holds SQLite’s lock, reads work, and waiting messages are accepted afterwards', async () => {
  const service = await startService()
  onTestFinished(() => service.dispose())
  const { id, token } = await service.admin.createConnected()
  const caller = service.instance(id, token)
  const other = new Sqlite(join(service.dataDir, 'pombal.db'), { timeout: 5_000 })
  onTestFinished(() => void other.close())
  other.exec('begin immediate')
  const sent = caller.send('5511987654321', 'hello')
  let longestMs = 0
  for (let count = 0; count < CALLS; count += 1) {
    const begunAt = performance.now()
    await caller.instance()
    longestMs = Math.max(longestMs, performance.now() - begunAt)
  }
  other.exec('rollback')
  expect(longestMs).toBeLessThan(AT_ONCE_MS)
  expect((await sent).id).toMatch(/^msg_/)
})
