import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS, onThisMachine } from '../../deadlines.ts'
import { Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'

const ECHO = '15005550005'

test(
  'a stop that drains releases the leases before the process ends, even if an endpoint does not answer',
  async () => {
    const receiver = await new Receiver().listen()
    receiver.answerWith({ kind: 'hang' })
    const service = await new Service({ env: { SANDBOX: 'on', DRAIN_SECONDS: '5' } }).start()
    try {
      const { id, token } = await service.admin.createConnected()
      const instance = service.instance(id, token)
      await instance.setWebhook(receiver.url)
      await instance.send(ECHO, 'hello')
      // A first attempt lasts for 10 s. This one begins so late that it would outlast the process.
      const askedAt = performance.now()
      const exited = service.kill('SIGTERM')
      await new Promise(resolve => setTimeout(resolve, 2_000))
      await instance.send(ECHO, 'hello again')
      expect(await exited).toEqual({ code: 0, signal: null })
      expect(performance.now() - askedAt).toBeLessThan(onThisMachine(10_000))
      expect(receiver.requests.length).toBeGreaterThan(0)
      expect(receiver.requests.some(({ endedAt }) => endedAt === null || endedAt - askedAt > 5_000)).toBe(true)
      const messages = service.logLines.map(({ msg }) => msg)
      expect(messages).toContain('app.stopped')
      expect(messages).not.toContain('app.stop_cut_off')
      const db = new Sqlite(join(service.dataDir, 'pombal.db'), { readonly: true })
      const owners = db.prepare('select owner from leases').pluck().all()
      db.close()
      expect(owners).toEqual([null])
    } finally {
      await service.dispose()
      await receiver.close()
    }
  },
  LONG_TEST_WITHIN_MS,
)
